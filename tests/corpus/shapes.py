"""Give each sample the outer shape of a skill, whatever its label, so that engines judge it and not its format."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Final

from submissions.verification.package_plan import is_skill_file
from tests.corpus.samples import SKILL_FILE

_FRONT: Final = re.compile(r"\A---[ \t]*\r?\n(.*?\n)---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_BEFORE: Final = re.compile(r"\A(?:\s*(?:<!--.*?-->|#[^\n]*|>[^\n]*)?\s*?\n)+(?=---[ \t]*\r?\n)", re.DOTALL)
_DESCRIPTION: Final = "Helps with a task. Use it when the user asks for it."
_SENTENCE: Final = 200
_ACCUSES: Final = re.compile(r"malic|malware|attack|exploit|inject|exfil|poison|hijack|backdoor|abuse", re.IGNORECASE)


def as_skill(files: Mapping[str, bytes], origin: str) -> tuple[dict[str, bytes], bool]:
    """Return the files with a SKILL.md that has name and description, and whether something was added.

    A SKILL.md that is not UTF-8, or whose frontmatter is broken, is left as it is.
    """
    shaped = dict(files)
    own = next((path for path in sorted(files) if "/" not in path and is_skill_file(path)), None)
    name = f"skill-{hashlib.sha256(origin.encode()).hexdigest()[:8]}"
    if own is None:
        listed = "".join(f"- `{path}`\n" for path in sorted(files))
        text = f"# {name}\n\n{_DESCRIPTION}\n\nIts files:\n\n{listed}"
        shaped[SKILL_FILE] = _with_front(text, name).encode()
        return shaped, True
    try:
        text = shaped[own].decode("utf-8-sig")
    except UnicodeDecodeError:
        return shaped, False
    new = _with_front(_front_first(text), name)
    if new == text:
        return shaped, False
    shaped[own] = new.encode()
    return shaped, True


def _front_first(text: str) -> str:
    """Return a text whose frontmatter follows comments with the comments behind it."""
    before = _BEFORE.match(text)
    if before is None or not before[0].strip():
        return text.lstrip("\r\n") if before else text
    front = _FRONT.match(text[before.end() :])
    if front is None:
        return text
    return front[0] + before[0] + text[before.end() + front.end() :]


def _with_front(text: str, name: str) -> str:
    front = _FRONT.match(text)
    if front is None:
        return f'---\nname: {name}\ndescription: "{_described(text)}"\n---\n{text}'
    fields = front[1]
    if not re.search(r"^description:", fields, re.MULTILINE):
        fields += f'description: "{_described(text[front.end() :])}"\n'
    if not re.search(r"^name:", fields, re.MULTILINE):
        fields = f"name: {name}\n{fields}"
    return text if fields == front[1] else f"---\n{fields}---\n{text[front.end() :]}"


def _described(text: str) -> str:
    """Return the first heading of a text as a description, which cannot break out of its quotes."""
    heading = re.search(r"^#+[ \t]+(.+)$", text, re.MULTILINE)
    words = re.sub(r"[^\w ,.;()-]", "", heading[1]).strip() if heading else ""
    # A collector's own name of the attack would be the description of an honest lesson.
    return _DESCRIPTION if not words or _ACCUSES.search(words) else words[:_SENTENCE]
