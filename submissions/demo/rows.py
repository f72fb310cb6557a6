"""Make the rows of an invented skill: its versions, history, submissions and what is derived from it.

Nothing here reads or writes a database. The number of a skill is not known before its row is written, so that the
column ``skill_id`` is left to the caller.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from marketplace.models import SKILL_PREFIX
from marketplace.records import SkillRecord
from marketplace.search.documents import document_of
from marketplace.skills.counts import facets_of
from submissions.demo.bulk import entry
from submissions.demo.invented import HOST, Invented
from submissions.demo.packages import Kept
from submissions.states import State
from submissions.store.transitions import submission_key
from vskill.environments import WorkerEnv
from vskill.kv.clock import isoformat, parse_isoformat
from vskill.kv.codec import encode

Row = dict[str, Any]

_ENGINE: Final = {"name": "invented", "version": "1", "status": "complete"}
_ACTOR: Final = "load_demo"
# Of each hundred submissions that published nothing, how many ended how.
_ENDS: Final = ((State.REJECTED, 55), (State.ON_HOLD, 15), (State.TIER1_FAILED, 15), (State.DEQUEUED, 15))
_WAY: Final = (State.RECEIVED, State.TIER1_SCANNING, State.TIER2_SCANNING, State.AUTO_APPROVED, State.PUBLISHED)


@dataclass(frozen=True)
class Made:
    """The rows of one invented skill by table, and the values of the sketch by which its latest version is found."""

    entry: Row
    versions: list[Row]
    document: Row
    facets: list[Row]
    events: list[Row]
    days: list[Row]
    submissions: list[Row]
    steps: list[Row]
    sketch: tuple[int, ...]


def make_rows(env: WorkerEnv, invented: Invented, packages: Sequence[Kept], scan_key: str, now: datetime) -> Made:
    """Return the rows of an invented skill whose versions hold some of ``packages``.

    ``scan_key`` is kept with each version; ``now`` is the day of its last downloads.
    """
    latest, number = packages[invented.packages[-1]], len(invented.packages) - 1
    content_hash = latest.package.content_hash
    record = replace(
        invented.record,
        content_hash=content_hash,
        commit_sha=content_hash[:40],
        submission_id=_submission_id(invented.record.slug, number),
    )
    own = {"downloads": invented.downloads, "recent_downloads": invented.recent}
    key = f"{SKILL_PREFIX}{record.slug}"
    versions = [
        _version(env, record, packages[chosen], scan_key, number, newest=number == len(invented.packages) - 1)
        for number, chosen in enumerate(invented.packages)
    ]
    values = _submissions(record, versions)
    return Made(
        entry=entry(env, key, record.to_value(), own),
        versions=versions,
        document={"namespace": env.name, **document_of(record, latest.fields["skill_md"])},
        facets=[{"namespace": env.name, "kind": kind, "value": value} for kind, value in facets_of(record)],
        events=[_published(env, key, version["version"], record.published_at) for version in versions],
        days=_days(env, invented, now),
        submissions=[entry(env, submission_key(value["id"]), value, {}) for value in values],
        steps=[step for value in values for step in _steps(env, value)],
        sketch=latest.sketch,
    )


def _submission_id(slug: str, number: int) -> str:
    return f"sub_{uuid.uuid5(uuid.NAMESPACE_URL, f'{HOST}{slug}/{number}').hex}"


def _version(env: WorkerEnv, record: SkillRecord, kept: Kept, scan_key: str, number: int, *, newest: bool) -> Row:
    return {
        "namespace": env.name,
        "version": f"1.{number}.0",
        "ordinal": number + 1,
        "submission_id": _submission_id(record.slug, number),
        "declared_version": f"1.{number}.0",
        "commit_sha": kept.package.content_hash[:40],
        "source_ref": "HEAD",
        "skill_path": record.skill_path,
        "name": record.name,
        "description": record.description,
        "license": record.license,
        "compatibility": record.compatibility,
        "metadata": encode({"tags": " ".join(record.tags)}),
        "verdict": record.verdict,
        "verdict_summary": record.verdict_summary,
        "capabilities": encode(record.capabilities),
        "engines": encode([_ENGINE]),
        "findings": "[]",
        "yank_reason": "",
        "quarantine_reason": "",
        "scan_key": scan_key,
        "created_at": parse_isoformat(record.updated_at if newest else record.published_at),
        **kept.fields,
    }


def _published(env: WorkerEnv, key: str, version: str, at: str) -> Row:
    return {
        "namespace": env.name,
        "subject": key,
        "action": "published",
        "version": version,
        "actor": _ACTOR,
        "reason": "",
        "created_at": parse_isoformat(at),
    }


def _days(env: WorkerEnv, invented: Invented, now: datetime) -> list[Row]:
    """Return its downloads of this week, all on one day that is another for each skill."""
    if not invented.recent:
        return []
    back = int(invented.record.slug.rpartition("-")[2]) % 7
    day = (now.date() - timedelta(days=back)).isoformat()
    version = invented.record.latest_version
    return [{"namespace": env.name, "version": version, "day": day, "count": invented.recent}]


def _submissions(record: SkillRecord, versions: Sequence[Row]) -> list[Row]:
    """Return the value of the submission of each version and, of each sixth skill, of one that published nothing."""
    values = [
        _value(version["submission_id"], State.PUBLISHED, record, isoformat(version["created_at"]))
        | {"slug": record.slug, "version": version["version"]}
        for version in versions
    ]
    if int(record.slug.rpartition("-")[2]) % 6 == 0:
        chance = random.Random(record.slug)  # noqa: S311 - nothing secret
        end = chance.choices([state for state, _share in _ENDS], [share for _state, share in _ENDS])[0]
        path = f"{record.skill_path}-draft"
        draft = replace(record, skill_path=path, identity=f"{record.identity[:-4]}sent")
        values.append(_value(_submission_id(path, 0), end, draft, record.published_at))
    return values


def _value(submission_id: str, state: State, record: SkillRecord, at: str) -> Row:
    return {
        "id": submission_id,
        "state": state,
        "identity": record.identity,
        "repoUrl": record.repo_url,
        "skillPath": record.skill_path,
        "skillName": record.name,
        "verdict": "held" if state in (State.ON_HOLD, State.REJECTED) else record.verdict,
        "reason": "Invented: nothing was checked.",
        "createdAt": at,
        "updatedAt": at,
    }


def _steps(env: WorkerEnv, value: Row) -> list[Row]:
    way = [*_WAY[: 3 if value["state"] != State.PUBLISHED else -1], value["state"]]
    moment = parse_isoformat(value["createdAt"])
    return [
        {
            "namespace": env.name,
            "submission_id": value["id"],
            "sequence": number,
            "from_state": before,
            "to_state": state,
            "reason": "",
            "actor": _ACTOR,
            "trigger": _ACTOR,
            "created_at": moment,
        }
        for number, (before, state) in enumerate(zip(["", *way], way, strict=False), 1)
    ]
