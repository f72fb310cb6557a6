"""Skills for tests, published by the real code from files that the test chooses."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from django.db import transaction

from marketplace.artifacts.fingerprints import content_hash
from marketplace.catalog import Publication, PublishedFile, PublishedVersion, publish_skill
from marketplace.models import SkillEntry
from marketplace.records import SkillRecord
from marketplace.skills.count_check import mend_counts
from vskill.environments import WorkerEnv
from vskill.kv.clock import isoformat

Files = Mapping[str, bytes | str]


def skill_md(name: str, description: str, body: str = "Do it well.") -> str:
    """Return a SKILL.md with front matter."""
    return f"---\nname: {name}\ndescription: {description}\n---\n\n# {name}\n\n{body}\n"


def write_files(root: Path, files: Files) -> tuple[PublishedFile, ...]:
    """Write files below ``root`` and return their manifest; a file that starts with ``#!`` is executable."""
    manifest = []
    for path, content in sorted(files.items()):
        data = content.encode() if isinstance(content, str) else content
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        manifest.append(PublishedFile(path, len(data), hashlib.sha256(data).hexdigest(), data.startswith(b"#!")))
    return tuple(manifest)


def hash_of(files: tuple[PublishedFile, ...]) -> str:
    """Return the content hash of a manifest."""
    return content_hash((file.path, file.sha256) for file in files)


def make_publication(
    root: Path, *, name: str = "hello-skill", files: Files | None = None, **fields: Any
) -> Publication:
    """Return a publication of ``files`` (by default a SKILL.md and a script), which are written below ``root``.

    Each call is a new submission. ``fields`` are other fields of the publication.
    """
    description: str = fields.pop("description", f"Says hello as {name}.")
    body: str = fields.pop("body", "Do it well.")
    text = skill_md(name, description, body)
    given: Files = files if files is not None else {"SKILL.md": text, "scripts/run.sh": "#!/bin/sh\necho hello\n"}
    manifest = write_files(root, given)
    shown = given.get("SKILL.md", text)
    values: dict[str, Any] = {
        "submission_id": f"sub_{uuid4().hex}",
        "repo_url": "https://github.com/acme/skills",
        "skill_path": f"skills/{name}",
        "commit_sha": hashlib.sha1(hash_of(manifest).encode(), usedforsecurity=False).hexdigest(),
        "content_hash": hash_of(manifest),
        "name": name,
        "description": description,
        "license": "MIT",
        "compatibility": "",
        "metadata": {},
        "declared_version": "",
        "files": manifest,
        "root": root,
        "skill_md": shown if isinstance(shown, str) else shown.decode(errors="replace"),
        "verdict": "clear",
        "verdict_summary": "No known pattern was found.",
        "findings": (),
        "engines": ({"name": "skilltotal", "version": "0.84.0", "status": "complete"},),
        "capabilities": ("shell",),
        "actor": "test",
    }
    return Publication(**{**values, **fields})


def publish_example(
    env: WorkerEnv, *, name: str = "hello-skill", files: Files | None = None, **fields: Any
) -> PublishedVersion:
    """Publish one skill with the arguments of ``make_publication``, and leave nothing on disk."""
    root = Path(tempfile.mkdtemp(prefix="vskill-skill-"))
    try:
        return publish_skill(env, make_publication(root, name=name, files=files, **fields))
    finally:
        shutil.rmtree(root)


def write_entries(env: WorkerEnv, count: int, *, start: int = 0, dated: bool = False) -> None:
    """Write ``count`` entries of published skills in bulk, as the KV layer would write them one by one.

    With ``dated`` they were published years ago, three in each minute.
    """
    rows = []
    for number in range(start, start + count):
        record = SkillRecord(
            slug=f"skill-{number:05}", name=f"skill-{number:05}", latest_version="1.0.0", identity=f"{number:064x}"
        )
        value = record.to_value()
        if dated:
            moment = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(minutes=number // 3)
            value |= {"publishedAt": isoformat(moment), "updatedAt": isoformat(moment + timedelta(days=number % 5))}
        row = SkillEntry(namespace=env.name, key=f"skill:{record.slug}", value=json.dumps(value))
        for column, projected in SkillEntry.project(value).items():
            setattr(row, column, projected)
        rows.append(row)
    SkillEntry.objects.bulk_create(rows)
    with transaction.atomic(using=env.database):
        mend_counts(env)
