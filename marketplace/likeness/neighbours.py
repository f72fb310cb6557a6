"""Find the published skills that are copies of one, or similar to it, for its page: a few, and at a bounded cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from django.db.models import F, QuerySet

from marketplace.likeness.published import degree, files_in, is_similar
from marketplace.likeness.signature import compare, signature
from marketplace.models import SkillVersion, VersionShingle
from vskill.accounts.audiences import PUBLIC
from vskill.environments import WorkerEnv

Shown = Callable[[QuerySet[SkillVersion]], QuerySet[SkillVersion]]
"""The rule of what is shown: it leaves the versions that whoever asks may see."""

MOST: Final = 5
# Measured, see docs/known-bad.md: texts of different origin share less than half as much.
DERIVED: Final = 0.8
# Larger ones are not read for a page: their text takes too long to compare.
MOST_BYTES: Final = 256 * 1024
# Of the values by which candidates are found; copies of one text have all of them in common.
_LEAST_COMMON: Final = 3
# How many of the versions with one of these values are candidates.
_MOST_SHARING: Final = 200


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


def origin(version: SkillVersion, alike: Iterable[Neighbour]) -> Neighbour | None:
    """Return of which of the skills that are ``alike`` a version is a copy or a fork, or ``None``.

    That is one that was published earlier, and is shown to everybody to whom the version is: a copy first, then the
    most similar with a share of ``DERIVED``. The skills of one repository are no forks of each other; they share
    helpers.
    """
    told = {PUBLIC, version.skill.audience}
    earlier = [one for one in alike if one.earlier and one.version.skill.audience in told]
    copied = (one for one in earlier if one.copy)
    forked = (one for one in earlier if one.share >= DERIVED and one.version.skill.repo_url != version.skill.repo_url)
    return next(copied, None) or next(forked, None)


def neighbours(env: WorkerEnv, version: SkillVersion, shown: Shown) -> list[Neighbour]:
    """Return at most ``MOST`` listed skills that are alike: copies first and the earliest of these, then by share.

    ``env`` is the environment of ``version``, and ``shown`` the rule of what is shown.
    """
    first = version.skill.published_at
    found: dict[int, Neighbour] = {}

    def keep(other: SkillVersion, share: float, copy: bool) -> None:
        theirs = other.skill.published_at
        earlier = bool(first and theirs and theirs < first)
        found.setdefault(other.skill_id, Neighbour(other, share, copy, earlier))

    listed = shown(_latest(env)).exclude(skill_id=version.skill_id)
    # One statement each, in the order of its index: some skills have hundreds of copies, and none of them is sorted.
    for name in ("content_hash", "normal_digest"):
        if (value := getattr(version, name)) and len(found) < MOST:
            for other in listed.filter(**{name: value}).order_by("pk")[:MOST]:
                keep(other, 1.0, True)
    if len(found) < MOST and version.size <= MOST_BYTES:
        for other, share in _similar(env, version, listed):
            keep(other, share, False)
    return sorted(found.values(), key=lambda one: (not one.copy, -one.share, one.version.pk))[:MOST]


def _latest(env: WorkerEnv) -> QuerySet[SkillVersion]:
    versions = SkillVersion.objects.using(env.database).filter(
        namespace=env.name,
        version=F("skill__latest_version"),
        quarantined_at__isnull=True,
    )
    return versions.select_related("skill").defer("skill_md", "findings", "manifest", "contract", "metadata")


def _similar(env: WorkerEnv, version: SkillVersion, listed: QuerySet[SkillVersion]) -> list[tuple[SkillVersion, float]]:
    shingles = VersionShingle.objects.using(env.database).filter(namespace=env.name)
    values = list(shingles.filter(version_id=version.pk).values_list("value", flat=True))
    if not values:
        return []
    common: Counter[int] = Counter()
    for value in values:
        # The first of each by its index: half a registry may have one sentence of a template.
        common.update(
            shingles.filter(value=value).order_by("version_id").values_list("version_id", flat=True)[:_MOST_SHARING]
        )
    del common[version.pk]
    least = min(_LEAST_COMMON, len(values))
    numbers = [number for number, count in sorted(common.items(), key=lambda one: (-one[1], one[0])) if count >= least]
    numbers = numbers[: 4 * MOST]
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
