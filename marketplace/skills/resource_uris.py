"""The URIs by which MCP names a skill and its files, and the frontmatter that clients of its skills extension take."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote, unquote

import yaml

from marketplace.artifacts.archives import MANIFEST_NAME

SCHEME: Final = "skill://"
# Of the beginning of SKILL.md: frontmatter has 16 KiB at most, and its fences.
HEAD_CHARACTERS: Final = 16 * 1024 + 64
_FRONTMATTER: Final = re.compile(r"\A---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_NAME: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_LONGEST_NAME: Final = 64
_LONGEST_DESCRIPTION: Final = 1024


class _Loader(yaml.SafeLoader):
    """Reads what intake accepted; that has no aliases, by which a little text can become a lot."""

    def compose_node(self, parent: Any, index: int) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("an alias")
        return super().compose_node(parent, index)


def uri_of_skill(slug: str, skill_md: str) -> str:
    """Return the URI of a skill whose SKILL.md begins with ``skill_md``; empty where clients would refuse it."""
    front = accepted_frontmatter(skill_md[:HEAD_CHARACTERS])
    return "" if front is None else resource_uri(slug, front["name"], MANIFEST_NAME)


def resource_uri(slug: str, name: str, path: str) -> str:
    """Return the URI of a file of a skill; the last part before the file is the name that the skill gives itself."""
    folder = slug if slug == name else f"{slug}/{name}"
    return f"{SCHEME}{folder}/{quote(path)}"


def read_uri(uri: str) -> tuple[str, str] | None:
    """Return the slug in a URI, and what follows it, or ``None`` for a URI that is none of a skill."""
    slug, _, rest = uri.removeprefix(SCHEME).partition("/")
    return (slug, unquote(rest)) if uri.startswith(SCHEME) and slug and rest else None


# Of some 16 KiB each. To parse one takes longer than all the rest of an answer, and its author decides how long.
@lru_cache(maxsize=1024)
def accepted_frontmatter(head: str) -> dict[str, Any] | None:
    """Return the frontmatter in the ``head`` of a SKILL.md, or ``None`` where clients would refuse it.

    They refuse names and descriptions that the specification of skills does not allow, and what is not JSON, such as a
    date without quotes.
    """
    found = _FRONTMATTER.match(head.removeprefix("\ufeff"))
    if found is None:
        return None
    try:
        front = yaml.load(found[1], Loader=_Loader)  # noqa: S506 - a SafeLoader
        json.dumps(front, allow_nan=False)
    except (yaml.YAMLError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError):
        # Intake takes as text what a SafeLoader makes values of: it raises all of these for tags and numbers.
        return None
    return front if isinstance(front, dict) and _is_allowed(front) else None


def _is_allowed(front: dict[str, Any]) -> bool:
    name, description = front.get("name"), front.get("description")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        return False
    if not isinstance(description, str) or not description.strip() or len(description) > _LONGEST_DESCRIPTION:
        return False
    tools = front.get("allowed-tools", "")
    texts = (front.get("license", ""), front.get("compatibility", "x"))
    return (
        all(isinstance(key, str) for key in front)
        and all(isinstance(text, str) for text in texts)
        and 1 <= len(texts[1]) <= 500
        and isinstance(front.get("metadata", {}), dict)
        and (isinstance(tools, str) or (isinstance(tools, list) and all(isinstance(one, str) for one in tools)))
    )
