"""The text of what is held, kept so that a reviewer reads findings in their context: ``held:{submission}``.

A host may be away, or the commit gone, when a person has time to look. It is kept while the submission is held, and a
week longer for an undo. It is data of a stranger: shown escaped, and never written to a file.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from marketplace.artifacts.archives import Member
from marketplace.artifacts.verified_files import read_members
from submissions.verification.packages import SkillPackage
from vskill.environments import WorkerEnv
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace

MOST_BYTES_OF_FILE: Final = 200_000
MOST_BYTES: Final = 1_000_000
KEPT_AFTER_DECISION: Final = timedelta(days=7)


@dataclass(frozen=True)
class HeldFile:
    """One file; ``text`` is ``None`` where it is no UTF-8 text, or exceeds the limits."""

    path: str
    size: int
    sha256: str
    executable: bool
    text: str | None


def _key(submission_id: str) -> str:
    return f"held:{submission_id}"


def held_value(package: SkillPackage, first: Collection[str]) -> dict[str, Any]:
    """Return what is kept of ``package``: the texts, of the files in ``first`` before the others, up to the limits."""
    members = read_members(package.root, package.files)
    budget = MOST_BYTES
    texts: dict[str, str | None] = {}
    for member in sorted(members, key=lambda one: (one.path not in first, one.path)):
        text = _text(member) if len(member.content) <= min(budget, MOST_BYTES_OF_FILE) else None
        texts[member.path] = text
        budget -= len(member.content) if text is not None else 0
    files = [
        {
            "path": one.path,
            "size": one.size,
            "sha256": one.sha256,
            "executable": one.executable,
            "text": texts[one.path],
        }
        for one in package.files
    ]
    return {"contentHash": package.content_hash, "inert": sorted(package.inert), "files": files}


def _text(member: Member) -> str | None:
    if b"\0" in member.content:
        return None
    try:
        return member.content.decode()
    except UnicodeDecodeError:
        return None


async def keep_files(env: WorkerEnv, submission_id: str, value: dict[str, Any]) -> None:
    """Keep what ``held_value`` returned, in place of what was kept of an earlier check."""
    await KVNamespace(KVEntry, env).put(_key(submission_id), value)


def let_expire(env: WorkerEnv, submission_id: str, *, after: timedelta | None = KEPT_AFTER_DECISION) -> None:
    """Let what is kept of a submission go a while after the decision; with ``None`` keep it on, as after an undo."""
    entries = KVNamespace(KVEntry, env)
    outcome = entries.get_sync(_key(submission_id))
    if outcome.found:
        entries.put_sync(_key(submission_id), outcome.value, ttl=after)


def read_held(env: WorkerEnv, submission_id: str, content_hash: str) -> list[HeldFile] | None:
    """Return the files of a held submission, ``None`` where none are kept of the content ``content_hash``."""
    outcome = KVNamespace(KVEntry, env).get_sync(_key(submission_id))
    value = outcome.value if outcome.found else None
    if not isinstance(value, dict) or value.get("contentHash") != content_hash:
        return None
    try:
        return [_file(one) for one in value["files"]]
    except (KeyError, TypeError, ValueError):
        return None


def _file(value: Any) -> HeldFile:
    text = value["text"]
    return HeldFile(
        str(value["path"]),
        int(value["size"]),
        str(value["sha256"]),
        bool(value["executable"]),
        text if isinstance(text, str) else None,
    )
