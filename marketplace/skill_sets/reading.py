"""Read collections as visitors see them: what is withheld or withdrawn is left out, and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from django.db.models import QuerySet

from marketplace.judgement import Judgement, judge, verdict_of
from marketplace.models import Collection, CollectionSkill, SkillEntry, SkillVersion
from marketplace.skills.near_names import near_values
from marketplace.skills.visibility import fetchable_versions, is_visible, known_skills, listed_skills
from vskill.environments import WorkerEnv
from vskill.kv.codec import is_storable
from vskill.kv.cursors import encode_cursor
from vskill.kv.keyset import binding_of, bound_position, no_cursor

NOTHING_INSTALLED: Final = "This collection offers nothing at the moment that installs without a question."


@dataclass(frozen=True)
class Member:
    """A skill that a collection offers, with the version that it gives: the one it is ``pinned`` to, or the latest."""

    skill: SkillEntry
    version: SkillVersion
    pinned: bool
    note: str

    @property
    def suspicious(self) -> bool:
        """Return whether it is left out of what installs without a question; its own page offers it."""
        return judge(verdict_of(self.version), self.version.flag_reason) is Judgement.SUSPICIOUS


@dataclass(frozen=True)
class SkillSet:
    """A collection with the members that it offers now, and how many it holds that are withdrawn."""

    collection: Collection
    members: tuple[Member, ...]
    withdrawn: int

    @property
    def installed(self) -> tuple[Member, ...]:
        """Return the members that are installed as one."""
        return tuple(one for one in self.members if not one.suspicious)

    @property
    def left_out(self) -> tuple[Member, ...]:
        """Return the members that are offered, but not without a look at their pages."""
        return tuple(one for one in self.members if one.suspicious)


@dataclass(frozen=True)
class Summary:
    """A collection in a list: how many skills it ``offered`` now."""

    collection: Collection
    offered: int


def all_collections(env: WorkerEnv) -> QuerySet[Collection]:
    """Return the collections of an environment."""
    return Collection.objects.using(env.database).filter(namespace=env.name)


def find_collection(env: WorkerEnv, slug: str) -> Collection | None:
    """Return the collection with this slug, in whatever case it is written, or ``None``."""
    name = slug.lower()
    return all_collections(env).filter(slug=name).first() if is_storable(name) and len(name) <= 64 else None


def collection_page(env: WorkerEnv, cursor: str, limit: int) -> tuple[list[Collection], str | None]:
    """Return at most ``limit`` collections by their slugs, and the cursor of the next page or ``None`` on the last.

    ``cursor`` is that of the page before, empty for the first one. Raises ``InvalidCursor``.
    """
    binding = binding_of(env.name, "collections")
    after = bound_position(binding, cursor) if cursor else [""]
    if len(after) != 1 or not isinstance(after[0], str) or not is_storable(after[0]):
        raise no_cursor()
    rows = all_collections(env).order_by("slug")
    found = list((rows.filter(slug__gt=after[0]) if after[0] else rows)[: limit + 1])
    return found[:limit], encode_cursor(binding, found[limit - 1].slug) if len(found) > limit else None


def newest_collections(env: WorkerEnv, limit: int) -> list[Collection]:
    """Return the collections that were changed last, at most ``limit``."""
    return list(all_collections(env).order_by("-changed_at", "-pk")[:limit])


def near_collections(env: WorkerEnv, asked: str) -> list[str]:
    """Return the slugs of collections that are near to ``asked``, the nearest first."""
    return near_values(all_collections(env), "slug", asked)


def read_set(env: WorkerEnv, collection: Collection) -> SkillSet:
    """Return a collection with what it offers now, in the order of its operator."""
    every = list(_rows(env, [collection.pk]).order_by("position", "pk"))
    # One that is private is not even counted as withdrawn.
    told = known_skills(_of_numbers(env, {row.skill_id for row in every})).in_bulk()
    rows = [row for row in every if row.skill_id in told]
    skills = {pk: skill for pk, skill in told.items() if is_visible(skill) and skill.latest_version}
    shown = [row for row in rows if row.skill_id in skills]
    wanted = {(row.skill_id, row.version or skills[row.skill_id].latest_version): row for row in shown}
    # Not the contract and the findings, which say what a version can touch, and what of it was not read.
    found = offered_versions(env, wanted.keys()).defer("skill_md")
    versions = {(one.skill_id, one.version): one for one in found}
    members = tuple(
        Member(skills[row.skill_id], versions[key], bool(row.version), row.note)
        for key, row in wanted.items()
        if key in versions
    )
    return SkillSet(collection, members, len(rows) - len(members))


def summaries(env: WorkerEnv, collections: Sequence[Collection]) -> list[Summary]:
    """Return each collection with how many skills it offers now, which is what ``read_set`` would find."""
    rows = list(_rows(env, [one.pk for one in collections]))
    latest = dict(_skills(env, {row.skill_id for row in rows}).values_list("pk", "latest_version"))
    shown = [row for row in rows if row.skill_id in latest]
    wanted = [(row.collection_id, (row.skill_id, row.version or latest[row.skill_id])) for row in shown]
    there = set(offered_versions(env, {key for _collection, key in wanted}).values_list("skill_id", "version"))
    counts = Counter(collection for collection, key in wanted if key in there)
    return [Summary(one, counts[one.pk]) for one in collections]


def collections_of(env: WorkerEnv, skill: SkillEntry, limit: int = 20) -> list[Collection]:
    """Return the collections that offer a visible skill now, by their titles, at most ``limit``."""
    rows = CollectionSkill.objects.using(env.database).filter(skill_id=skill.pk).select_related("collection")
    found = list(rows.order_by("collection__title", "pk")[:limit])
    pinned = {(skill.pk, row.version) for row in found if row.version}
    there = set(offered_versions(env, pinned).values_list("skill_id", "version")) if pinned else set()
    return [
        row.collection for row in found if ((skill.pk, row.version) in there if row.version else skill.latest_version)
    ]


def offered_versions(env: WorkerEnv, keys: AbstractSet[tuple[int, str]]) -> QuerySet[SkillVersion]:
    """Return the versions that may be offered anew of the skills and numbers in ``keys``, and perhaps others of them.

    A yanked version can be fetched by its number, but is no longer given to anybody.
    """
    rows = SkillVersion.objects.using(env.database).filter(
        namespace=env.name,
        skill_id__in={skill for skill, _version in keys},
        version__in={version for _skill, version in keys},
        yanked_at__isnull=True,
    )
    return fetchable_versions(rows)


def _rows(env: WorkerEnv, collections: Sequence[int]) -> QuerySet[CollectionSkill]:
    return CollectionSkill.objects.using(env.database).filter(collection_id__in=collections)


def _skills(env: WorkerEnv, numbers: set[int]) -> QuerySet[SkillEntry]:
    # The numbers are of this environment, as the collection is. Asked for it as well, SQLite would follow an index of
    # the environment and read all of its skills.
    return listed_skills(_of_numbers(env, numbers))


def _of_numbers(env: WorkerEnv, numbers: set[int]) -> QuerySet[SkillEntry]:
    return SkillEntry.objects.using(env.database).filter(pk__in=numbers)
