"""The reference validator of the specification (``agentskills validate``), run on what is published."""

from __future__ import annotations

import io
import tempfile
import zipfile
from pathlib import Path

from skills_ref import validate

from marketplace.models import ArchiveBlob, SkillVersion


def refusals(version: SkillVersion) -> list[str]:
    """Return what the validator says against a published version, installed in a folder of the name of the skill."""
    blob = ArchiveBlob.objects.get(sha256=version.zip_sha256)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / version.name.replace("/", "-")
        with zipfile.ZipFile(io.BytesIO(bytes(blob.content))) as archive:
            archive.extractall(folder)
        return [str(one) for one in validate(folder)]


def notes(version: SkillVersion) -> list[str]:
    """Return the rules by which the registry says that a published version departs from the specification."""
    return sorted({rule for one in version.findings if (rule := str(one["ruleId"])).startswith("lint.")})
