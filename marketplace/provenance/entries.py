"""What the log tells: publications with their verdicts, later verdicts, flags and withdrawals.

Nothing is told of a skill that not everybody sees: what is in a public log is public for ever. When it is opened to
everybody, its publications are told then, and when it is closed, that alone is told.

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
from marketplace.models import SKILL_PREFIX, LogLeaf, LogPending, SigningKey, SkillEntry, SkillVersion
from vskill.accounts.audiences import PUBLIC
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
    "transferred": "transferred",
}
CLOSED: Final = "closed"
KEY_COMPROMISED: Final = "key-compromised"
_FLAGS: Final = {"flagged": "flagged", "flag cleared": "flag-cleared"}


def note_published(env: WorkerEnv, version: SkillVersion) -> None:
    """Tell of a publication, in its transaction."""
    if version.skill.audience == PUBLIC:
        _write(published(env, version), env)


def note_closed(env: WorkerEnv, row: SkillEntry) -> None:
    """Tell that a skill is no longer shown to everybody, in the transaction in which it is still public."""
    _write(_pending(env, CLOSED, database_now(env.database), row, None), env)


def note_opened(env: WorkerEnv, row: SkillEntry) -> None:
    """Tell of the publications of a skill that everybody sees from now on, and which of them are withdrawn.

    What was told before, when the skill was public, is not told again. Call it in the transaction of the change.
    """
    versions = SkillVersion.objects.using(env.database).filter(skill=row).select_related("skill")
    found = list(versions.defer("skill_md", "findings", "manifest", "contract").order_by("pk"))
    told, now = told_published(env, [one.pk for one in found]), database_now(env.database)
    for one in found:
        if one.pk in told:
            continue
        _write(published(env, one), env)
        for kind, happened in (
            ("version-quarantined", one.quarantined_at is not None),
            ("yanked", one.yanked_at is not None),
            ("flagged", bool(one.flag_reason)),
        ):
            if happened:
                _write(_pending(env, kind, now, row, one), env)
    if told:
        _write(_pending(env, "opened", now, row, None), env)


def told_published(env: WorkerEnv, versions: list[int]) -> set[int | None]:
    """Return which of some versions the log has, or will have, an entry about their publication."""
    wanted = {"namespace": env.name, "version_number__in": versions, "kind": PUBLISHED}
    return {
        number
        for model in (LogPending, LogLeaf)
        for number in model.objects.using(env.database).filter(**wanted).values_list("version_number", flat=True)
    }


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
    if version.skill.audience != PUBLIC:
        return
    _write(_pending(env, SCANNED, at, version.skill, version, verdict=verdict, engines=named_engines(engines)), env)


def note_change(env: WorkerEnv, action: str, row: SkillEntry, version: str) -> None:
    """Tell of a withdrawal or a flag, or the end of one, in its transaction.

    ``action`` is the word of the history, ``row`` the skill and ``version`` the number of the version that it is about,
    if it is about one. Other actions are none of the log's, and nothing is written.
    """
    word, _, cause = action.partition(": ")
    kind = _WITHDRAWALS.get(action) or _FLAGS.get(word)
    if kind is None or row.audience != PUBLIC:
        return
    about = SkillVersion.objects.using(env.database).filter(skill=row, version=version).only("version", "content_hash")
    more = {"cause": cause} if cause else {}
    _write(_pending(env, kind, database_now(env.database), row, about.first() if version else None, **more), env)


def note_key_compromised(env: WorkerEnv, key: SigningKey, since: datetime) -> None:
    """Tell that nothing which ``key`` signed at ``since`` or later is trusted, in the transaction that marks it."""
    told = {"keyId": key.key_id, "algorithm": key.algorithm, "compromisedSince": isoformat(since)}
    body = {"type": KEY_COMPROMISED, "at": isoformat(database_now(env.database)), **told}
    _write(LogPending(namespace=env.name, kind=KEY_COMPROMISED, body=_text(body)), env)


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
    number = version.pk if version is not None else None
    return LogPending(namespace=env.name, version_number=number, kind=kind, body=_text(body))


def _text(body: Mapping[str, Any]) -> str:
    return json.dumps(body, separators=(",", ":"), sort_keys=True)


def _write(pending: LogPending, env: WorkerEnv) -> None:
    pending.save(using=env.database, force_insert=True)
