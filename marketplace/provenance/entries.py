"""What the log tells: publications with their verdicts, later verdicts, flags and withdrawals.

An entry is written in the transaction of the change, so the log never lacks one and never has one of what did not
happen. It names what was decided about which content, and neither reasons nor persons: nothing can be taken out of a
log again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from marketplace.judgement import verdict_of
from marketplace.models import SKILL_PREFIX, LogPending, SkillEntry, SkillVersion
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now, isoformat

PUBLISHED: Final = "published"
SCANNED: Final = "scanned"
# What the history calls it, and what the log does.
_WITHDRAWALS: Final = {
    "yanked": "yanked",
    "unyanked": "unyanked",
    "version quarantined": "version-quarantined",
    "version restored": "version-restored",
    "quarantined": "quarantined",
    "deleted": "deleted",
    "restored": "restored",
    "renamed": "renamed",
}
_FLAGS: Final = {"flagged": "flagged", "flag cleared": "flag-cleared"}


def note_published(env: WorkerEnv, version: SkillVersion) -> None:
    """Tell of a publication, in its transaction."""
    _write(published(env, version), env)


def published(env: WorkerEnv, version: SkillVersion) -> LogPending:
    """Return what the log tells of a publication, to be written."""
    return _pending(
        env,
        PUBLISHED,
        version.created_at,
        version.skill,
        version,
        commit=version.commit_sha,
        zip=version.zip_sha256,
        tarGz=version.tar_sha256,
        verdict=verdict_of(version),
        engines=named_engines(version.engines),
    )


def note_scanned(
    env: WorkerEnv, version: SkillVersion, verdict: str, engines: Iterable[Mapping[str, Any]], at: datetime
) -> None:
    """Tell of a later scan that came to another verdict than the one before it, in its transaction.

    ``verdict`` is that of the scan of ``version`` by these ``engines``, and ``at`` when it ended.
    """
    _write(_pending(env, SCANNED, at, version.skill, version, verdict=verdict, engines=named_engines(engines)), env)


def note_change(env: WorkerEnv, action: str, row: SkillEntry, version: str) -> None:
    """Tell of a withdrawal or a flag, or the end of one, in its transaction.

    ``action`` is the word of the history, ``row`` the skill and ``version`` the number of the version that it is about,
    if it is about one. Other actions are none of the log's, and nothing is written.
    """
    word, _, cause = action.partition(": ")
    kind = _WITHDRAWALS.get(action) or _FLAGS.get(word)
    if kind is None:
        return
    about = SkillVersion.objects.using(env.database).filter(skill=row, version=version).only("version", "content_hash")
    more = {"cause": cause} if cause else {}
    _write(_pending(env, kind, database_now(env.database), row, about.first() if version else None, **more), env)


def named_engines(engines: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return the name, the version and the status of each engine, and nothing else of it."""
    return [{name: str(one.get(name, "")) for name in ("name", "version", "status")} for one in engines]


def _pending(
    env: WorkerEnv, kind: str, at: datetime, skill: SkillEntry, version: SkillVersion | None, **more: Any
) -> LogPending:
    body = {"type": kind, "at": isoformat(at), "skill": skill.key.removeprefix(SKILL_PREFIX), **more}
    # The same however the skill is called.
    body["identity"] = skill.identity
    if version is not None:
        body |= {"version": version.version, "contentHash": version.content_hash}
    text = json.dumps(body, separators=(",", ":"), sort_keys=True)
    number = version.pk if version is not None else None
    return LogPending(namespace=env.name, version_number=number, kind=kind, body=text)


def _write(pending: LogPending, env: WorkerEnv) -> None:
    pending.save(using=env.database, force_insert=True)
