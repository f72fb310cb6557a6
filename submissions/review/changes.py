"""What a held submission changes in the published version of its skill, line by line, within the limits of diffs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from marketplace.artifacts.archives import read_member
from marketplace.artifacts.diffs import MAX_BYTES, compare
from marketplace.models import ArchiveBlob, SkillEntry, SkillVersion
from submissions.review.lines import shown_lines
from submissions.store.held_files import HeldFile
from submissions.store.records import Submission
from vskill.environments import WorkerEnv

MOST_LINES: Final = 1500
_MOST_FILES: Final = 100


def changes_since_published(
    env: WorkerEnv, submission: Submission, files: Sequence[HeldFile] | None
) -> dict[str, Any] | None:
    """Return the version that is published and what ``submission`` changes in it; ``None`` where there is none.

    ``files`` are those that were kept for the review. Without them there is only the version to name.
    """
    skills = SkillEntry.objects.using(env.database).filter(namespace=env.name, identity=submission.text("identity"))
    skill = skills.exclude(identity="").first()
    if skill is None:
        return None
    versions = SkillVersion.objects.using(env.database).filter(namespace=env.name, skill=skill)
    before = versions.order_by("-ordinal").first()
    if before is None:
        return None
    shown: dict[str, Any] = {"slug": skill.slug, "version": before.version, "files": None}
    if files is None:
        return shown
    manifest: Any = [{"path": one.path, "sha256": one.sha256, "executable": one.executable} for one in files]
    after = SkillVersion(manifest=manifest)
    archive = bytes(
        ArchiveBlob.objects.using(env.database).values_list("content", flat=True).get(sha256=before.zip_sha256)
    )
    texts = {one.path: one.text for one in files}

    def read_file(version: SkillVersion, path: str) -> bytes:
        if version is before:
            return read_member(archive, path)
        text = texts[path]
        # What was not kept is no text or too long, and is shown as too long.
        return text.encode() if text is not None else b" " * (MAX_BYTES + 1)

    # Not kept, as what stands for a file that was not kept must not be taken for a comparison with it.
    changes, left = compare(before, after, read_file, keep=False), MOST_LINES
    shown["files"] = []
    for one in changes[:_MOST_FILES]:
        lines = one.patch.split("\n") if one.patch else []
        shown["files"].append({"change": one, "lines": shown_lines(lines[:left]), "cut": len(lines) > left})
        left = max(0, left - len(lines))
    shown["more"] = max(0, len(changes) - _MOST_FILES)
    return shown
