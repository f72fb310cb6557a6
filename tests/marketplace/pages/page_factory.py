"""Publish real skills, as the pipeline does, for tests of pages."""

from __future__ import annotations

import hashlib
import itertools
import struct
import tempfile
import zlib
from pathlib import Path
from typing import Any

from marketplace.catalog import Publication, PublishedFile, PublishedVersion, publish_skill
from vskill.environments import WorkerEnv

_numbers = itertools.count(1)
TEXT = "# {name}\n\nDo it **well**.\n"
ENGINES = (
    {"name": "structure", "version": "1", "status": "complete"},
    {"name": "skilltotal", "version": "0.84.0", "status": "complete"},
)


def png(width: int = 3, height: int = 2) -> bytes:
    """Return a PNG that a browser can draw where it is small; a large one has no pixels."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = (b"\0" + b"\x30\x80\xc0" * width) * height if width * height < 1_000_000 else b""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def finding(**changes: Any) -> dict[str, Any]:
    """Return a finding as engines store it."""
    return {
        "ruleId": "ST-NET-001",
        "severity": "medium",
        "kind": "risk",
        "title": "Fetches a page at run time",
        "file": "SKILL.md",
        "line": 6,
        "excerpt": "Read https://example.com/guide.html first.",
        "why": "What the page says tomorrow was not checked today.",
        "advice": "Bring the text along in a file.",
        "engine": "skilltotal",
        "fingerprint": "0" * 32,
        **changes,
    }


def reference(name: str, **changes: Any) -> dict[str, Any]:
    """Return a reference as it is stored in a contract."""
    common = {"kind": "address", "file": "SKILL.md", "line": 6, "role": "read", "pinned": ""}
    return {**common, "name": name, **changes}


def contract(*references: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a contract as it is stored, of a skill that refers to ``references``."""
    return {
        "declares": {"description": "Draft release notes.", "allowed-tools": "Bash(git:*) Read"},
        "does": [
            {"name": "reads_files", "declared": "allowed-tools: Read", "places": [["scripts/collect.py", 3]]},
            {"name": "sends", "declared": "", "places": [["SKILL.md", 6], ["scripts/collect.py", 5]]},
        ],
        "chains": [{"name": "download_to_execution", "holds": False, "places": [["SKILL.md", 7]]}],
        "references": list(references),
        "left": 0,
        **changes,
    }


def publish(
    env: WorkerEnv,
    name: str = "release-notes",
    *,
    files: dict[str, bytes] | None = None,
    description: str = "Draft release notes from a git history.",
    repo_url: str = "https://github.com/acme/skills",
    text: str | None = None,
    version: str = "",
    verdict: str = "clear",
    **details: Any,
) -> PublishedVersion:
    """Publish one skill through the catalogue; each call is a new submission."""
    number = next(_numbers)
    skill_md = f"---\nname: {name}\ndescription: {description}\n---\n{TEXT.format(name=name) if text is None else text}"
    contents = {"SKILL.md": skill_md.encode(), **(files or {})}
    with tempfile.TemporaryDirectory() as folder:
        manifest = []
        for path, content in sorted(contents.items()):
            target = Path(folder) / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            manifest.append(
                PublishedFile(path, len(content), hashlib.sha256(content).hexdigest(), path.endswith(".sh"))
            )
        tree = "\n".join(f"{one.path}\0{one.sha256}" for one in manifest)
        publication = Publication(
            submission_id=f"sub_{number:032x}",
            repo_url=repo_url,
            skill_path=f"skills/{name}",
            commit_sha=hashlib.sha1(str(number).encode(), usedforsecurity=False).hexdigest(),
            content_hash=hashlib.sha256(tree.encode()).hexdigest(),
            name=name,
            description=description,
            license=details.pop("license", "MIT"),
            compatibility=details.pop("compatibility", ""),
            metadata=details.pop("metadata", {}),
            declared_version=version,
            files=tuple(manifest),
            root=Path(folder),
            skill_md=skill_md,
            verdict=verdict,
            verdict_summary="No known pattern found.",
            engines=details.pop("engines", ENGINES),
            **details,
        )
        return publish_skill(env, publication)
