"""From what git prints when a fetch fails to the error that says it to a person."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass

from submissions.sandbox.child_processes import ChildOutcome, ChildResult
from submissions.source.errors import (
    CommitNotAvailable,
    FetchFailed,
    FetchTimedOut,
    RepositoryEmpty,
    RepositoryMoved,
    RepositoryNotFound,
    RepositoryTooLarge,
    SourceError,
)
from vskill.hidden_characters import visible

_MISSING = "There is no such repository, or it is private: only public ones can be fetched. Check the address."
_MOVED = "The host answers with a redirect: the repository was renamed or moved. Submit its new address."
_EMPTY = "The repository has no such branch, tag or commit, or nothing was committed to it yet."
_GONE = "The host can no longer give the pinned commit. Submit the repository again."
_LARGE = "The repository is too large."
_SLOW = "The host sent almost nothing for 20 seconds, so the fetch was stopped. Try again later."
_TLS = "The certificate of the host could not be verified, so nothing was fetched."

_KNOWN: tuple[tuple[str, type[SourceError], str], ...] = (
    (r"file too large", RepositoryTooLarge, _LARGE),
    (r"out of memory|cannot allocate memory|mmap failed|unable to create threads?", RepositoryTooLarge, _LARGE),
    (r"operation too slow|less than \d+ bytes/sec", FetchTimedOut, _SLOW),
    (r"not our ref|unadvertised object|no such remote ref [0-9a-f]{40}", CommitNotAvailable, _GONE),
    (r"couldn't find remote ref|no such remote ref|no matching remote head", RepositoryEmpty, _EMPTY),
    (r"returned error: 30\d|redirect", RepositoryMoved, _MOVED),
    (
        (
            r"could not read (username|password)|authentication failed|returned error: (401|403|404|410)|not found"
            r"|does not appear to be a git repository|terminal prompts disabled"
        ),
        RepositoryNotFound,
        _MISSING,
    ),
    (r"certificate|sslcainfo|cafile", FetchFailed, _TLS),
)


@dataclass(frozen=True)
class Failure:
    """What went wrong: the error to raise, its sentence, and git's own words made safe to show."""

    error: type[SourceError]
    sentence: str
    summary: str


def explain_failure(result: ChildResult) -> Failure:
    """Return why a git command failed, read from its standard error and the way it ended."""
    summary = _first_useful_line(result.stderr)
    if result.outcome is ChildOutcome.EXITED and result.returncode in {-signal.SIGXCPU, -signal.SIGXFSZ}:
        return Failure(RepositoryTooLarge, _LARGE, summary)
    text = result.stderr.decode("utf-8", "replace").lower()
    for pattern, error, sentence in _KNOWN:
        if re.search(pattern, text):
            return Failure(error, sentence, summary)
    return Failure(FetchFailed, f"The repository could not be fetched. git says: {summary}.", summary)


def _first_useful_line(stderr: bytes) -> str:
    """Return the first line that states a cause: without what the other side printed, paths and addresses."""
    lines = [line.strip() for line in stderr.decode("utf-8", "replace").splitlines()]
    own = [line for line in lines if line and not line.startswith(("remote:", "hint:", "warning:"))]
    marked = [line for line in own if line.startswith(("fatal:", "error:"))]
    line = (marked or own or ["git gave no reason"])[0]
    line = re.sub(r"^(fatal|error):\s*", "", line)
    line = re.sub(r"\S*://\S+", "the address", line)
    line = re.sub(r"'?/[\w./-]{3,}'?", "the folder", line)
    return visible(line, 200).rstrip(".")
