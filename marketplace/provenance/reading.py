"""What is signed of a version, and where the log tells of it."""

from __future__ import annotations

from typing import Final

from marketplace.models import LogLeaf, SkillVersion, VersionSignature
from marketplace.provenance.entries import PUBLISHED
from vskill.environments import WorkerEnv

# Of one version; only a version that is flagged again and again has more.
_MOST_LEAVES: Final = 100


def signs(env: WorkerEnv) -> bool:
    """Tell whether an environment signs what it publishes."""
    return bool(env.policy.signing_key_file)


def find_signature(env: WorkerEnv, version: SkillVersion) -> VersionSignature | None:
    """Return the signature of a version with its keys, ``None`` where it is not signed."""
    rows = VersionSignature.objects.using(env.database).filter(namespace=env.name, version=version)
    return rows.select_related("key", "files_key").first()


def publication_leaf(env: WorkerEnv, version: SkillVersion) -> LogLeaf | None:
    """Return the entry of the log about the publication of a version, ``None`` where there is none yet."""
    rows = LogLeaf.objects.using(env.database).filter(namespace=env.name, version_number=version.pk, kind=PUBLISHED)
    return rows.order_by("number").first()


def leaves_about(env: WorkerEnv, version: SkillVersion) -> list[LogLeaf]:
    """Return the newest entries of the log about a version, the oldest of them first."""
    rows = LogLeaf.objects.using(env.database).filter(namespace=env.name, version_number=version.pk)
    return list(rows.order_by("-number")[:_MOST_LEAVES])[::-1]
