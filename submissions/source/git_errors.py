"""Translate what git prints when a fetch fails into the error that is shown to a person."""

from __future__ import annotations

import logging
import re
import signal

from submissions.sandbox.child_processes import ChildOutcome, ChildResult
from submissions.source.errors import (
    CommitNotAvailable,
    FetchFailed,
    FetchTimedOut,
    RepositoryEmpty,
    RepositoryMoved,
    RepositoryNotFound,
    RepositoryRefused,
    RepositoryTooLarge,
    SourceError,
)
from submissions.source.git_process import FetchLimits
from submissions.source.origin import Origin
from vskill.hidden_characters import visible

logger = logging.getLogger(__name__)

_MIB = 1024 * 1024

_MISSING = (
    "There is no such repository at {host}, or it asks for sign-in. Check the address; if it is right, an operator can "
    "add a credential for {host}, or a key where it is read over ssh."
)
NOT_SHOWN = (
    "There is no such repository at {host}, or it is not shown to this registry. Check the address; if it is right, "
    "tell an operator."
)
_LOGIN_REFUSED = (
    "{host} does not let this registry in: what its operator configured as the credential was refused. "
    "Check the address; if it is right, tell an operator."
)
_MOVED = "The host answers with a redirect: the repository was renamed or moved. Submit its new address."
_EMPTY = "The repository has no such branch, tag or commit, or nothing was committed to it yet."
_GONE = "The host can no longer give the pinned commit. Submit the repository again."
_LARGE = (
    "The repository is larger than {megabytes:,} MiB, or needs too much memory to unpack. "
    "Put the skills into a smaller repository."
)
_SLOW = "The host sent almost nothing for 20 seconds, so the fetch was stopped. Try again later."
_TLS = "The certificate of the host could not be verified, so nothing was fetched."

_HOST_KEY = (
    "The key that {host} shows is not the one that this registry was given for it, so nothing was fetched. "
    "Tell an operator."
)
_NO_HOST_KEY = (
    "This registry reads {host} over ssh, and no key was pinned by which it would know {host}, so nothing was fetched. "
    "Tell an operator: the file of known hosts needs the line of {host}."
)
_PROXY = "The proxy of this registry did not let it through to {host}. Try again later, or tell an operator."
_BUSY = "The host is in trouble or takes no more requests at the moment. Try again later."

_NO_ENTRY = r"authentication failed|returned error: (401|403)|permission denied \("
_ASKS = r"could not read (username|password)|terminal prompts disabled"

_KNOWN: tuple[tuple[str, type[SourceError], str], ...] = (
    # First, because the words that the host says with it may be any.
    (r"returned error: (5\d\d|408|429)", FetchFailed, _BUSY),
    (r"connect tunnel failed|from proxy after connect|could not resolve proxy|proxy connect", FetchFailed, _PROXY),
    # ssh says with it that the verification failed.
    (r"no \S+ host key is known", FetchFailed, _NO_HOST_KEY),
    (r"host key verification failed|host key for", FetchFailed, _HOST_KEY),
    (r"file too large", RepositoryTooLarge, _LARGE),
    (r"out of memory|cannot allocate memory|mmap failed|unable to create threads?", RepositoryTooLarge, _LARGE),
    (r"operation too slow|less than \d+ bytes/sec", FetchTimedOut, _SLOW),
    (r"not our ref|unadvertised object|no such remote ref [0-9a-f]{40}", CommitNotAvailable, _GONE),
    (r"couldn't find remote ref|no such remote ref|no matching remote head", RepositoryEmpty, _EMPTY),
    (r"returned error: 30\d|redirect", RepositoryMoved, _MOVED),
    (_NO_ENTRY, RepositoryRefused, _MISSING),
    (_ASKS, RepositoryNotFound, _MISSING),
    (
        (
            r"returned error: (404|410)|not found|does not appear to be a git repository|could not be found"
            r"|repository does not exist"
        ),
        RepositoryNotFound,
        _MISSING,
    ),
    (r"certificate|sslcainfo|cafile", FetchFailed, _TLS),
)


def fetch_error(result: ChildResult, origin: Origin, limits: FetchLimits, *, pinned: bool) -> SourceError:
    """Return the error for a failed ``git fetch`` from ``origin``.

    ``result`` holds its standard error and how it ended. ``limits`` are those of the fetch. ``pinned`` says that a
    commit was requested by its id.
    """
    if result.outcome is ChildOutcome.TIMED_OUT:
        return fetch_timed_out(origin.host, limits)
    error, sentence = _explain(result)
    if sentence in (_HOST_KEY, _NO_HOST_KEY):
        # Whoever submitted can do nothing about it.
        logger.warning("the file of known hosts has no key that %s shows: nothing is read there over ssh", origin.host)
    if (place := origin.signs_in_at) and issubclass(error, RepositoryNotFound):
        error, sentence = _despite_login(result, place, origin.host)
    if error is RepositoryTooLarge:
        return RepositoryTooLarge(_LARGE.format(megabytes=limits.pack_bytes // _MIB))
    if error is RepositoryEmpty and pinned:
        return CommitNotAvailable(_GONE)
    return error(sentence.replace("{host}", origin.host or "this place"))


def _despite_login(result: ChildResult, place: str, host: str) -> tuple[type[SourceError], str]:
    """Return the error where our own credential did not open the repository; the operator hears of it in the log."""
    text = result.stderr.decode("utf-8", "replace").lower()
    if not re.search(f"{_NO_ENTRY}|{_ASKS}", text):
        return RepositoryNotFound, NOT_SHOWN
    logger.warning(
        "%s refused the credential for %s: it may have expired, or may not read this repository.", host, place
    )
    # Not as missing: what was published from there is still there.
    return RepositoryRefused, _LOGIN_REFUSED


def fetch_timed_out(host: str, limits: FetchLimits) -> FetchTimedOut:
    """Return the error for a fetch from ``host`` ('' for this machine) that exceeded ``limits.seconds``."""
    where = host or "this machine"
    return FetchTimedOut(f"Fetching from {where} took longer than {limits.seconds:g} seconds and was stopped.")


def _explain(result: ChildResult) -> tuple[type[SourceError], str]:
    if result.outcome is ChildOutcome.EXITED and result.returncode in {-signal.SIGXCPU, -signal.SIGXFSZ}:
        return RepositoryTooLarge, _LARGE
    text = result.stderr.decode("utf-8", "replace").lower()
    for pattern, error, sentence in _KNOWN:
        if re.search(pattern, text):
            return error, sentence
    return FetchFailed, f"The repository could not be fetched. git says: {first_useful_line(result.stderr)}."


def first_useful_line(stderr: bytes) -> str:
    """Return the first line of git's standard error that states a cause, made safe to show.

    Lines that come from the host are skipped. Paths and addresses are replaced by words.
    """
    lines = [line.strip() for line in stderr.decode("utf-8", "replace").splitlines()]
    own = [line for line in lines if line and not line.startswith(("remote:", "hint:", "warning:"))]
    marked = [line for line in own if line.startswith(("fatal:", "error:"))]
    line = (marked or own or ["git gave no reason"])[0]
    line = re.sub(r"^(fatal|error):\s*", "", line)
    line = re.sub(r"\S*://\S+", "the address", line)
    line = re.sub(r"'?/[\w./-]{3,}'?", "the folder", line)
    return visible(line, 200).rstrip(".")
