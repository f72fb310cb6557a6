"""Check the fields of a skill's frontmatter by the specification of agentskills.io."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field

from submissions.verification.findings import Finding, FindingKind, Severity
from submissions.verification.frontmatter import Value, problem

MAX_NAME = 64
MAX_DESCRIPTION = 1024
MAX_COMPATIBILITY = 500
MAX_SHORT_TEXT = 200
_ASCII_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_VERSION = re.compile(r"v?\d{1,9}(?:\.\d{1,9}){0,2}(?:[-+.][0-9A-Za-z.+-]{1,60})?")
_KNOWN_FIELDS = frozenset({"name", "description", "license", "compatibility", "metadata", "allowed-tools"})


@dataclass
class Manifest:
    """The fields of one SKILL.md and the findings about them; unreadable fields are empty."""

    name: str = ""
    description: str = ""
    license: str = ""
    compatibility: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    version: str = ""
    findings: list[Finding] = field(default_factory=list)


def read_manifest(fields: Mapping[str, Value], *, folder: str, file: str) -> Manifest:
    """Check every field and return them with all findings.

    ``folder`` is the name of the skill's folder, '' for the root; ``file`` is the path that findings show.
    """
    manifest = Manifest()
    found = manifest.findings
    manifest.name = _name(fields, folder, file, found)
    manifest.description = _description(fields, file, found)
    manifest.license = _text(fields, "license", MAX_SHORT_TEXT, file, found)
    manifest.compatibility = _text(fields, "compatibility", MAX_COMPATIBILITY, file, found)
    manifest.metadata = _metadata(fields, file, found)
    manifest.version = _version(fields, manifest.metadata, file, found)
    unknown = sorted(fields.keys() - _KNOWN_FIELDS)
    if unknown:
        names = ", ".join(unknown)
        found.append(
            lint("unknown-field", f"Fields outside the specification: {names}", file, "Put them under `metadata`.")
        )
    return manifest


def lint(rule: str, title: str, file: str, advice: str, severity: Severity = Severity.LOW) -> Finding:
    """Return a finding about a deviation from the specification, which never stops a package.

    ``rule`` is the rule's id without its prefix ``lint.``. ``title`` and ``advice`` are shown to the author, with the
    path ``file``. ``severity`` is LOW unless the rule is a mere remark.
    """
    return Finding(
        rule_id=f"lint.{rule}",
        severity=severity,
        kind=FindingKind.LINT,
        title=title,
        file=file,
        line=1,
        why="The agentskills.io specification asks for this, and stricter clients may refuse the skill.",
        advice=advice,
    )


def _name(fields: Mapping[str, Value], folder: str, file: str, found: list[Finding]) -> str:
    value = fields.get("name", "")
    advice = f"Use 1 to {MAX_NAME} lower-case letters, digits and single hyphens, such as `pdf-forms`."
    if not isinstance(value, str) or not value.strip():
        found.append(problem("name", "The frontmatter has no name", file=file, line=1, advice=advice))
        return ""
    name = unicodedata.normalize("NFKC", value.strip())
    if len(name) > MAX_NAME:
        found.append(
            problem("name", f"The name is longer than {MAX_NAME} characters", file=file, excerpt=name, advice=advice)
        )
        return name[:MAX_NAME]
    well_formed = (
        name == name.lower()
        and all(character.isalnum() or character == "-" for character in name)
        and not name.startswith("-")
        and not name.endswith("-")
        and "--" not in name
    )
    if not well_formed:
        found.append(
            problem(
                "name",
                "The name has capitals, spaces, doubled or outer hyphens, or other characters",
                file=file,
                excerpt=name,
                advice=advice,
            )
        )
    elif not _ASCII_NAME.fullmatch(name):
        found.append(lint("name-ascii", f"The name {name!r} has letters outside a to z", file, advice, Severity.INFO))
    if folder and unicodedata.normalize("NFKC", folder) != name:
        found.append(
            lint(
                "name-folder",
                f"The name {name!r} differs from the folder {folder!r}",
                file,
                "Give the folder the name of the skill.",
            )
        )
    return name


def _description(fields: Mapping[str, Value], file: str, found: list[Finding]) -> str:
    value = fields.get("description", "")
    advice = f"Say in 1 to {MAX_DESCRIPTION} characters what the skill does and when to use it."
    if not isinstance(value, str) or not value.strip():
        found.append(problem("description", "The frontmatter has no description", file=file, line=1, advice=advice))
        return ""
    text = value.strip()
    if len(text) > MAX_DESCRIPTION:
        title = f"The description has {len(text):,} characters; {MAX_DESCRIPTION:,} are allowed"
        found.append(problem("description", title, file=file, excerpt=text, advice=advice))
    return text[:MAX_DESCRIPTION]


def _text(fields: Mapping[str, Value], key: str, limit: int, file: str, found: list[Finding]) -> str:
    value = fields.get(key, "")
    if not isinstance(value, str):
        found.append(lint(key, f"The field {key} is not a text", file, f"Write {key} as one line of text."))
        return ""
    text = value.strip()
    if len(text) > limit:
        found.append(lint(key, f"The field {key} has more than {limit} characters", file, "Shorten it."))
    return text[:limit]


def _metadata(fields: Mapping[str, Value], file: str, found: list[Finding]) -> dict[str, str]:
    value = fields.get("metadata", {})
    if value == "":
        return {}
    if not isinstance(value, dict):
        found.append(lint("metadata", "The field metadata is not a map", file, "Write it as `key: value` lines."))
        return {}
    if any(not isinstance(item, str) for item in value.values()):
        found.append(
            lint("metadata", "The field metadata holds lists or maps", file, "Every value of it should be a text.")
        )
    return {key: item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for key, item in value.items()}


def _version(fields: Mapping[str, Value], metadata: Mapping[str, str], file: str, found: list[Finding]) -> str:
    value = fields.get("version") or metadata.get("version", "")
    text = value.strip() if isinstance(value, str) else ""
    if not text and not value:
        return ""
    if not _VERSION.fullmatch(text):
        found.append(
            lint("version", "The version is not of the form 1.2.3", file, "Use a semantic version, such as 1.2.3.")
        )
        return ""
    return text
