"""Find what is published of a content, by index: the same content, the same text under other names, similar text."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from django.db.models import Count, Q, QuerySet

from marketplace.likeness.signature import Likeness, Signature, compare, signature
from marketplace.models import ArchiveBlob, SkillVersion, VersionShingle
from vskill.environments import WorkerEnv

# How many values of its sketch a published version is found by; each is a row.
_KEPT: Final = 8
_MOST_CANDIDATES: Final = 200
# Measured, see docs/known-bad.md: either share makes two skills similar.
RESEMBLANCE: Final = 0.7
CONTAINED: Final = 0.8
LEAST_COMPARED: Final = 24


@dataclass(frozen=True)
class SimilarVersion:
    """A published version with text that is similar to a content."""

    version: SkillVersion
    likeness: Likeness


def is_similar(likeness: Likeness) -> bool:
    """Return whether two texts are so similar that a person has to compare them."""
    contained = likeness.contained >= CONTAINED and likeness.compared >= LEAST_COMPARED
    return likeness.resemblance >= RESEMBLANCE or contained


def degree(likeness: Likeness) -> float:
    """Return the share that is named to people: the greater of both."""
    return max(likeness.resemblance, likeness.contained)


def kept_of(made: Signature) -> tuple[int, ...]:
    """Return the values of a sketch by which a published version is found."""
    return made.sketch[:_KEPT]


def index_version(env: WorkerEnv, version: SkillVersion, made: Signature) -> None:
    """Keep the sketch of a published version, in the caller's transaction, so that similar ones are found by it."""
    rows = [VersionShingle(namespace=env.name, value=value, version_id=version.pk) for value in kept_of(made)]
    VersionShingle.objects.using(env.database).bulk_create(rows, ignore_conflicts=True)


def same_content(env: WorkerEnv, content_hash: str, normal_digest: str) -> list[SkillVersion]:
    """Return the published versions with a content hash or a normal digest; an empty one finds nothing."""
    wanted = Q(content_hash=content_hash) if content_hash else Q(pk__in=())
    found = {one.pk: one for one in _light(env).filter(wanted)}
    if normal_digest:
        found |= {one.pk: one for one in _light(env).filter(normal_digest=normal_digest)}
    return [found[pk] for pk in sorted(found)]


def similar_content(env: WorkerEnv, sketch: tuple[int, ...], *, most: int = _MOST_CANDIDATES) -> list[SimilarVersion]:
    """Return the published versions with text that is similar to that of a sketch, the most similar first.

    Their archives are read for the comparison, at most ``most`` of them: those that have most values in common.
    """
    shingles = VersionShingle.objects.using(env.database).filter(namespace=env.name, value__in=sketch)
    counted = shingles.values("version_id").annotate(common=Count("pk")).order_by("-common", "version_id")
    numbers = [row["version_id"] for row in counted[:most]]
    found = []
    for version in _light(env).filter(pk__in=numbers):
        likeness = compare(sketch, signature(files_of(env, version)).sketch)
        if is_similar(likeness):
            found.append(SimilarVersion(version, likeness))
    return sorted(found, key=lambda one: (-one.likeness.resemblance, one.version.pk))


def files_of(env: WorkerEnv, version: SkillVersion) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the bytes of each file of a published version, out of its archive."""
    return files_in(env.database, version.zip_sha256)


def files_in(alias: str, zip_sha256: str) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the bytes of each file of the zip archive with a SHA-256 (hex) in the database ``alias``."""
    blobs = ArchiveBlob.objects.using(alias).values_list("content", flat=True)
    with zipfile.ZipFile(io.BytesIO(bytes(blobs.get(sha256=zip_sha256)))) as archive:
        for member in archive.infolist():
            yield member.filename, archive.read(member)


def _light(env: WorkerEnv) -> QuerySet[SkillVersion]:
    versions = SkillVersion.objects.using(env.database).filter(namespace=env.name)
    return versions.select_related("skill").defer("skill_md", "findings", "manifest", "contract")
