"""The packages of invented skills as versions hold them, and their archives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from marketplace.artifacts.fingerprints import fingerprint
from marketplace.likeness.published import kept_of
from marketplace.likeness.signature import signature
from marketplace.models import ArchiveBlob
from submissions.demo.invented import Package
from vskill.environments import WorkerEnv
from vskill.kv.codec import encode


@dataclass(frozen=True)
class Kept:
    """A package with what every version of it holds, and the values of its sketch that are kept of a version."""

    package: Package
    fields: dict[str, Any]
    sketch: tuple[int, ...]

    @classmethod
    def of(cls, made: Package) -> Kept:
        """Return a package with the columns of its versions."""
        sizes = (len(made.zip.content), len(made.tar.content))
        likeness = signature((one.path, one.content) for one in made.members)
        fields = {
            "content_hash": made.content_hash,
            "normal_digest": likeness.normal_digest,
            "fingerprint": fingerprint((one.path, one.sha256) for one in made.files),
            "manifest": encode([vars(one) for one in made.files]),
            "skill_md": made.skill_md,
            "size": sum(one.size for one in made.files),
            "zip_sha256": made.zip.sha256,
            "zip_size": sizes[0],
            "tar_sha256": made.tar.sha256,
            "tar_size": sizes[1],
        }
        return cls(made, fields, kept_of(likeness))


def store_archives(env: WorkerEnv, packages: Iterable[Kept]) -> None:
    """Store the archives of packages, unless they are there."""
    archives = {one.sha256: one for kept in packages for one in (kept.package.zip, kept.package.tar)}
    ArchiveBlob.objects.using(env.database).bulk_create(
        [ArchiveBlob(sha256=one.sha256, content=one.content, size=len(one.content)) for one in archives.values()],
        ignore_conflicts=True,
    )
