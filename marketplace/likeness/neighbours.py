"""Find the published skills that are copies of one, or similar to it, for its page: a few, and at a bounded cost."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from django.db.models import Count, F, Q, QuerySet

from marketplace.likeness.published import degree, files_in, is_similar
from marketplace.likeness.signature import compare, signature
from marketplace.models import SkillVersion, VersionShingle
from marketplace.records import Visibility
from vskill.environments import WorkerEnv

MOST: Final = 5
# Larger ones are not read for a page: their text takes too long to compare.
MOST_BYTES: Final = 256 * 1024
# Of the values by which candidates are found; copies of one text have all of them in common.
_LEAST_COMMON: Final = 3


@dataclass(frozen=True)
class Neighbour:
    """The latest version of another skill that is alike.

    ``share`` is the share of text in common, from 0 to 1. ``copy`` says that it has the same content, or the same text
    under other names, and ``earlier`` that its skill was published first.
    """

    version: SkillVersion
    share: float
    copy: bool
    earlier: bool


def neighbours(env: WorkerEnv, version: SkillVersion) -> list[Neighbour]:
    """Return at most ``MOST`` listed skills that are alike: copies first and the earliest of these, then by share."""
    first = version.skill.published_at
    found: dict[int, Neighbour] = {}

    def keep(other: SkillVersion, share: float, copy: bool) -> None:
        theirs = other.skill.published_at
        earlier = bool(first and theirs and theirs < first)
        found.setdefault(other.skill_id, Neighbour(other, share, copy, earlier))

    listed = _latest(env).exclude(skill_id=version.skill_id)
    same = Q(content_hash=version.content_hash)
    if version.normal_digest:
        same |= Q(normal_digest=version.normal_digest)
    for other in listed.filter(same).order_by("skill__published_at", "pk")[:MOST]:
        keep(other, 1.0, True)
    if len(found) < MOST and version.size <= MOST_BYTES:
        for other, share in _similar(env, version, listed):
            keep(other, share, False)
    return sorted(found.values(), key=lambda one: (not one.copy, -one.share))[:MOST]


def _latest(env: WorkerEnv) -> QuerySet[SkillVersion]:
    versions = SkillVersion.objects.using(env.database).filter(
        namespace=env.name,
        version=F("skill__latest_version"),
        quarantined_at__isnull=True,
        skill__visibility=Visibility.VISIBLE,
    )
    return versions.select_related("skill").defer("skill_md", "findings", "manifest", "contract", "metadata")


def _similar(env: WorkerEnv, version: SkillVersion, listed: QuerySet[SkillVersion]) -> list[tuple[SkillVersion, float]]:
    shingles = VersionShingle.objects.using(env.database).filter(namespace=env.name)
    values = list(shingles.filter(version_id=version.pk).values_list("value", flat=True))
    if not values:
        return []
    counted = shingles.filter(value__in=values).exclude(version_id=version.pk).order_by().values_list("version_id")
    common = counted.annotate(common=Count("pk")).filter(common__gte=min(_LEAST_COMMON, len(values)))
    numbers = [number for number, _ in common.order_by("-common", "version_id")[: 4 * MOST]]
    close = list(listed.filter(pk__in=numbers, size__lte=MOST_BYTES).order_by("pk")[: 2 * MOST])
    if not close:
        return []
    ours = _sketch(env.database, version.zip_sha256)
    rated = [(other, compare(ours, _sketch(env.database, other.zip_sha256))) for other in close]
    return [(other, degree(likeness)) for other, likeness in rated if is_similar(likeness)]


@lru_cache(maxsize=512)
def _sketch(alias: str, zip_sha256: str) -> tuple[int, ...]:
    """Return the sketch of an archive; its bytes never change, so that each is read once in a process."""
    return signature(files_in(alias, zip_sha256)).sketch
