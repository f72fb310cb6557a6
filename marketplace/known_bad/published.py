"""Remember the content of a published version as known bad."""

from __future__ import annotations

from django.db import transaction

from marketplace.known_bad.entries import BadContent, Remembered, remember
from marketplace.likeness.published import files_of
from marketplace.likeness.signature import signature
from marketplace.models import SkillVersion
from marketplace.skills.moderation import quarantine_version
from vskill.environments import WorkerEnv


def remember_version(env: WorkerEnv, slug: str, version: str, *, actor: str, reason: str) -> Remembered:
    """Quarantine a version and remember its content as known bad, in one transaction.

    ``actor`` and ``reason`` go into both histories. Raises ``SkillNotFound`` and ``ReasonMissing``.
    """
    with transaction.atomic(using=env.database):
        quarantine_version(env, slug, version, actor=actor, reason=reason)
        versions = SkillVersion.objects.using(env.database).filter(namespace=env.name, skill__slug=slug)
        found = versions.select_related("skill").get(version=version)
        bad = BadContent(
            name=f"{slug} {version}",
            reason=reason,
            content_hash=found.content_hash,
            signature=signature(files_of(env, found)),
            source=f"{found.skill.repo_url} at {found.commit_sha[:12]}",
            publisher=found.skill.publisher,
        )
        return remember(env, bad, actor=actor)
