"""What is known of the folders that skills were published from: whether their repository still has them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final

from django.db import transaction

from marketplace.errors import MalformedRecord
from marketplace.models import SkillEntry, SkillVersion
from marketplace.records import SkillRecord
from marketplace.skills.store import Event, locked_skill_of, note, now_text
from vskill.environments import WorkerEnv
from vskill.kv.errors import VersionConflict

# As many folders of one repository are looked for at each visit.
MOST_FOLDERS: Final = 1000


@dataclass(frozen=True)
class KnownSkill:
    """A skill of a repository that was published, withheld ones included.

    ``path`` is its folder, ``source_ref`` the branch or tag that its latest version is from, and ``is_gone`` says that
    the folder was missing at the last visit.
    """

    slug: str
    name: str
    path: str
    identity: str
    source_ref: str
    is_gone: bool
    row: SkillEntry
    record: SkillRecord


def skills_of_repository(env: WorkerEnv, repo_url: str) -> list[KnownSkill]:
    """Return the skills that were published from the repository at a normalised URL, at most ``MOST_FOLDERS``."""
    rows = SkillEntry.objects.using(env.database).filter(namespace=env.name, repo_url=repo_url).exclude(identity="")
    records = []
    for row in rows.order_by("pk")[:MOST_FOLDERS]:
        try:
            records.append((row, row.record))
        except (MalformedRecord, ValueError):
            continue
    versions = SkillVersion.objects.using(env.database).filter(
        namespace=env.name, submission_id__in=[record.submission_id for _, record in records if record.submission_id]
    )
    refs = dict(versions.values_list("submission_id", "source_ref"))
    return [
        KnownSkill(
            slug=record.slug,
            name=record.name,
            path=record.skill_path,
            identity=record.identity,
            source_ref=refs.get(record.submission_id, ""),
            is_gone=bool(record.source_gone_at),
            row=row,
            record=record,
        )
        for row, record in records
    ]


def note_folders(env: WorkerEnv, known: Iterable[KnownSkill], gone: Collection[str], commit_sha: str) -> None:
    """Write which of the ``known`` skills a commit no longer has, and which it has again.

    ``gone`` are the folders among theirs that the commit lacks. A skill that somebody else changes at this moment is
    left for the next visit.
    """
    for one in known:
        if (one.path in gone) == one.is_gone:
            continue
        if one.is_gone:
            noted = replace(one.record, source_gone_at="", source_gone_commit="")
            event = Event("source back", "discovery", f"{one.path or '.'} at commit {commit_sha}")
        else:
            noted = replace(one.record, source_gone_at=now_text(env), source_gone_commit=commit_sha)
            event = Event("source gone", "discovery", f"{one.path or '.'} at commit {commit_sha}")
        try:
            with transaction.atomic(using=env.database):
                note(env, one.row, noted, event)
        except VersionConflict:
            continue


def note_copies(env: WorkerEnv, identity: str, folders: Collection[str]) -> None:
    """Write which other folders hold the content of the skill with an identity, in the caller's transaction.

    Raises ``VersionConflict`` where somebody else changes the skill at this moment.
    """
    row = locked_skill_of(env, identity)
    # Those that were found before stay: this time, only a part of the repository may have been looked at.
    if row is None or set(folders) <= set(row.record.also_at):
        return
    noted = replace(row.record, also_at=tuple(sorted({*row.record.also_at, *folders})))
    note(env, row, noted, Event("found in other folders", "discovery", ", ".join(noted.also_at)))
