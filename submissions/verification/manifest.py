"""Check the fields of a skill's frontmatter by the specification of agentskills.io."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from submissions.verification.findings import Finding, Severity
from submissions.verification.format_findings import lint, problem
from submissions.verification.frontmatter import Value

MAX_NAME = 64
MAX_DESCRIPTION = 1024
MAX_COMPATIBILITY = 500
MAX_SHORT_TEXT = 200
# The columns for names hold as many.
MAX_SHOWN_NAME = 200
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_VERSION = re.compile(r"v?\d{1,9}(?:\.\d{1,9}){0,2}(?:[-+.][0-9A-Za-z.+-]{1,60})?")
_KNOWN_FIELDS = frozenset({"name", "description", "license", "compatibility", "metadata", "allowed-tools"})


@dataclass
class Manifest:
    """The fields of one SKILL.md and the findings about them; unreadable fields are empty.

    ``description`` is shortened to what the specification allows. ``internal`` is ``metadata.internal``: the skill is
    for the maintainers of its repository, and clients offer it only by name.
    """

    name: str = ""
    description: str = ""
    license: str = ""
    compatibility: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    version: str = ""
    internal: bool = False
    findings: list[Finding] = field(default_factory=list)


def read_manifest(
    fields: Mapping[str, Value], *, folder: str, file: str, untyped: Collection[str] = frozenset()
) -> Manifest:
    """Check every field and return them with all findings.

    ``fields`` and ``untyped`` are those of the ``SkillDocument``. ``folder`` is the name of the skill's folder, '' for
    the root; ``file`` is the path that findings show.
    """
    manifest = Manifest()
    found = manifest.findings
    manifest.name = _name(fields, folder, file, found)
    manifest.description = _description(fields, file, found)
    _check_types(untyped, file, found)
    manifest.license = _text(fields, "license", MAX_SHORT_TEXT, file, found)
    manifest.compatibility = _text(fields, "compatibility", MAX_COMPATIBILITY, file, found)
    manifest.metadata = _metadata(fields, file, found)
    manifest.internal = manifest.metadata.get("internal", "").lower() == "true"
    manifest.version = _version(fields, manifest.metadata, file, found)
    unknown = sorted(fields.keys() - _KNOWN_FIELDS)
    if unknown:
        names = ", ".join(unknown)
        found.append(
            lint("unknown-field", f"Fields outside the specification: {names}", file, "Put them under `metadata`.")
        )
    return manifest


def _name(fields: Mapping[str, Value], folder: str, file: str, found: list[Finding]) -> str:
    value = fields.get("name", "")
    advice = f"Use 1 to {MAX_NAME} lower-case letters, digits and single hyphens, such as `pdf-forms`."
    if not isinstance(value, str):
        found.append(problem("name", "The name is not a text", file=file, line=1, advice=advice))
        return ""
    if not value.strip():
        return _folder_as_name(folder, file, found, advice)
    name = " ".join(unicodedata.normalize("NFKC", value).split())
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        found.append(
            lint(
                "name",
                f"The name {name[:MAX_NAME]!r} is not of the form that the specification asks for; "
                "it is shown as it is, and the address of the skill is derived from it",
                file,
                advice,
                Severity.INFO if _is_letters_of_any_script(name) else Severity.LOW,
            )
        )
    if folder and unicodedata.normalize("NFKC", folder) != name:
        found.append(
            lint(
                "name-folder",
                f"The name {name[:MAX_NAME]!r} differs from the folder {folder!r}",
                file,
                "Give the folder the name of the skill.",
            )
        )
    return name[:MAX_SHOWN_NAME]


def _folder_as_name(folder: str, file: str, found: list[Finding], advice: str) -> str:
    """Return the name of the folder for a skill without a name, as Claude Code does; the root has none."""
    if not folder:
        found.append(problem("name", "The frontmatter has no name", file=file, line=1, advice=advice))
        return ""
    title = f"The frontmatter has no name, so that of the folder is taken: {folder!r}"
    found.append(lint("name-missing", title, file, f"{advice} `npx skills` leaves out a skill without a name."))
    return unicodedata.normalize("NFKC", folder)[:MAX_SHOWN_NAME]


def _is_letters_of_any_script(name: str) -> bool:
    """Return whether a name is one but for letters outside a to z, which the reference validator accepts."""
    return (
        len(name) <= MAX_NAME
        and name == name.lower()
        and all(character.isalnum() or character == "-" for character in name)
        and not name.startswith("-")
        and not name.endswith("-")
        and "--" not in name
    )


def _description(fields: Mapping[str, Value], file: str, found: list[Finding]) -> str:
    value = fields.get("description", "")
    advice = f"Say in 1 to {MAX_DESCRIPTION:,} characters what the skill does and when to use it."
    if not isinstance(value, str) or not value.strip():
        found.append(problem("description", "The frontmatter has no description", file=file, line=1, advice=advice))
        return ""
    text = value.strip()
    if len(text) <= MAX_DESCRIPTION:
        return text
    title = f"The description has {len(text):,} characters; the specification allows {MAX_DESCRIPTION:,}"
    found.append(lint("description-length", f"{title}, and no more are shown", file, advice))
    return f"{text[: MAX_DESCRIPTION - 2].rstrip()} \u2026"


def _check_types(untyped: Collection[str], file: str, found: list[Finding]) -> None:
    for name in sorted({"name", "description"}.intersection(untyped)):
        title = f"The {name} is a number or a truth value for other readers"
        advice = f"Put the {name} into quotes: `npx skills` leaves the skill out as it is."
        found.append(lint("not-text", title, file, advice))


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
