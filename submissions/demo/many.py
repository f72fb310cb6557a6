"""Write many invented skills with their versions, submissions and history, past the queue.

Nothing is fetched or checked. They are there to see how pages, lists and search behave in a large registry. The files
of a skill are real and can be installed; many skills share them.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connections, transaction

from marketplace.models import (
    ALIAS_PREFIX,
    SKILL_PREFIX,
    DownloadDay,
    HistoryEvent,
    SearchDocument,
    SkillEntry,
    SkillFacet,
    SkillVersion,
)
from marketplace.search.documents import document_of, position_of
from marketplace.skills.count_check import mend_counts
from marketplace.skills.counts import fold
from submissions.demo.bulk import entry, insert
from submissions.demo.invented import HOST, PACKAGES, Invented, invent, package
from submissions.demo.packages import Kept, store_archives
from submissions.models import SubmissionEntry, SubmissionTransition
from submissions.states import State
from submissions.store.transitions import submission_key
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.kv.clock import database_now, isoformat, parse_isoformat
from vskill.kv.codec import encode
from vskill.read_only_admin import prefix_range

MOST: Final = 1_000_000
_AT_ONCE: Final = 2_000
_ENGINE: Final = {"name": "invented", "version": "1", "status": "complete"}
_ACTOR: Final = "load_demo"
# Of each hundred submissions that published nothing, how many ended how.
_ENDS: Final = ((State.REJECTED, 55), (State.ON_HOLD, 15), (State.TIER1_FAILED, 15), (State.DEQUEUED, 15))
_WAY: Final = (State.RECEIVED, State.TIER1_SCANNING, State.TIER2_SCANNING, State.AUTO_APPROVED, State.PUBLISHED)


class RealSkillsThere(VskillError):
    """Raised where invented skills would come among real ones; nothing was written."""

    code = "real_skills_there"


@dataclass
class Written:
    """How many rows were written."""

    skills: int = 0
    versions: int = 0
    submissions: int = 0


def write_many(
    env: WorkerEnv, count: int, *, scan_key: str = "", among_real: bool = False, told: Callable[[int], None] = print
) -> Written:
    """Write ``count`` invented skills beside those that were invented before, and return how many rows that were.

    ``scan_key`` is kept with each version, so that no rescan chooses it. ``told`` is called with the number of skills
    so far. Each transaction holds some thousand skills, so a run that is stopped leaves whole ones. Raises
    ``RealSkillsThere`` where the registry holds a skill that was not invented, unless ``among_real``.
    """
    skills = (
        SkillEntry.objects.using(env.database).filter(namespace=env.name).exclude(prefix_range("key", ALIAS_PREFIX))
    )
    invented = skills.filter(prefix_range("repo_url", HOST))
    if not among_real and skills.exclude(pk__in=invented.values("pk")).exclude(repo_url__startswith="file:").exists():
        raise RealSkillsThere(
            f"{env.name!r} holds skills that were not invented, and invented ones would stand among them. Nothing was "
            "written: use an empty registry, or say --among-real."
        )
    newest = invented.order_by("-pk").values_list("slug", flat=True).first()
    first = int(newest.rpartition("-")[2]) + 1 if newest else 0
    packages = [Kept.of(package(number)) for number in range(PACKAGES)]
    store_archives(env, packages)
    written, now = Written(), database_now(env.database)
    if connections[env.database].vendor == "sqlite":
        with connections[env.database].cursor() as cursor:
            # Else the pages of large indexes are written and read again and again.
            cursor.execute("PRAGMA cache_size=-262144")
    for start in range(first, first + count, _AT_ONCE):
        numbers = range(start, min(start + _AT_ONCE, first + count))
        made = [invent(number, max(20, (first + count) // 9), now) for number in numbers]
        with transaction.atomic(using=env.database):
            _write(env, made, packages, scan_key, written)
        told(written.skills)
    with transaction.atomic(using=env.database):
        mend_counts(env)
    while fold(env):
        pass
    return written


def _write(env: WorkerEnv, made: Sequence[Invented], packages: Sequence[Kept], scan_key: str, written: Written) -> None:
    made = [replace(one, record=replace(one.record, **_of_latest(one, packages))) for one in made]
    values = [one.record.to_value() for one in made]
    keys = [f"{SKILL_PREFIX}{one.record.slug}" for one in made]
    own = [{"downloads": one.downloads, "recent_downloads": one.recent} for one in made]
    insert(env, SkillEntry, [entry(env, *row) for row in zip(keys, values, own, strict=True)])
    rows = SkillEntry.objects.using(env.database).filter(namespace=env.name, key__in=keys).order_by("pk")
    pairs = list(zip(rows, made, strict=True))
    versions = [
        _version(row, one, number, packages[chosen], scan_key)
        for row, one in pairs
        for number, chosen in enumerate(one.packages)
    ]
    insert(env, SkillVersion, versions)
    _write_derived(env, pairs, packages)
    events = [
        {
            "namespace": env.name,
            "subject": row.key,
            "skill_id": row.pk,
            "action": "published",
            "version": f"1.{number}.0",
            "actor": _ACTOR,
            "reason": "",
            "created_at": row.published_at,
        }
        for row, one in pairs
        for number in range(len(one.packages))
    ]
    insert(env, HistoryEvent, events)
    submissions = _write_submissions(env, versions, made)
    written.skills += len(pairs)
    written.versions += len(versions)
    written.submissions += submissions


def _of_latest(one: Invented, packages: Sequence[Kept]) -> dict[str, Any]:
    content_hash = packages[one.packages[-1]].package.content_hash
    number = len(one.packages) - 1
    return {
        "content_hash": content_hash,
        "commit_sha": content_hash[:40],
        "submission_id": _submission_id(one.record.slug, number),
    }


def _submission_id(slug: str, number: int) -> str:
    return f"sub_{uuid.uuid5(uuid.NAMESPACE_URL, f'{HOST}{slug}/{number}').hex}"


def _version(row: SkillEntry, one: Invented, number: int, kept: Kept, scan_key: str) -> dict[str, Any]:
    record, newest = one.record, number == len(one.packages) - 1
    return {
        "namespace": row.namespace,
        "skill_id": row.pk,
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
        "compatibility": "",
        "metadata": encode({"tags": " ".join(record.tags)}),
        "verdict": record.verdict,
        "verdict_summary": record.verdict_summary,
        "capabilities": encode(record.capabilities),
        "engines": encode([_ENGINE]),
        "findings": "[]",
        "yank_reason": "",
        "quarantine_reason": "",
        "scan_key": scan_key,
        "created_at": row.changed_at if newest else row.published_at,
        **kept.fields,
    }


def _write_derived(env: WorkerEnv, pairs: Sequence[tuple[SkillEntry, Invented]], packages: Sequence[Kept]) -> None:
    documents = [
        {
            "id": position_of(row.pk, row.downloads),
            "namespace": env.name,
            "skill_id": row.pk,
            **document_of(one.record, packages[one.packages[-1]].fields["skill_md"]),
        }
        for row, one in pairs
    ]
    insert(env, SearchDocument, documents)
    facets = [
        {"namespace": env.name, "kind": kind, "value": value, "skill_id": row.pk}
        for row, one in pairs
        for kind, values in ((SkillFacet.TAG, one.record.tags), (SkillFacet.CAPABILITY, one.record.capabilities))
        for value in values
    ]
    insert(env, SkillFacet, facets)
    today = database_now(env.database).date()
    days = [
        {
            "namespace": env.name,
            "skill_id": row.pk,
            "version": row.latest_version,
            "day": (today - timedelta(days=row.pk % 7)).isoformat(),
            "count": one.recent,
        }
        for row, one in pairs
        if one.recent
    ]
    insert(env, DownloadDay, days)


def _write_submissions(env: WorkerEnv, versions: Sequence[dict[str, Any]], made: Sequence[Invented]) -> int:
    """Write the submission of each version, and for each six skills one that published nothing."""
    values = [
        _value(version["submission_id"], State.PUBLISHED, made_by.record, version["created_at"])
        | {"slug": made_by.record.slug, "version": version["version"]}
        for version, made_by in zip(versions, (one for one in made for _ in one.packages), strict=True)
    ]
    for one in made[::6]:
        chance = random.Random(one.record.slug)  # noqa: S311 - nothing secret
        end = chance.choices([state for state, _share in _ENDS], [share for _state, share in _ENDS])[0]
        path = f"{one.record.skill_path}-draft"
        record = replace(one.record, skill_path=path, identity=f"{one.record.identity[:-4]}sent")
        moment = parse_isoformat(one.record.published_at)
        values.append(_value(_submission_id(path, 0), end, record, moment))
    insert(env, SubmissionEntry, [entry(env, submission_key(value["id"]), value, {}) for value in values])
    insert(env, SubmissionTransition, [step for value in values for step in _steps(env, value)])
    return len(values)


def _value(submission_id: str, state: State, record: Any, moment: datetime | None) -> dict[str, Any]:
    at = isoformat(moment) if moment is not None else record.published_at
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


def _steps(env: WorkerEnv, value: dict[str, Any]) -> list[dict[str, Any]]:
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
