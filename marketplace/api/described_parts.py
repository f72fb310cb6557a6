"""What the descriptions of several routes share: their parameters, and the operation that reads JSON."""

from __future__ import annotations

from typing import Any, Final

from marketplace.api.bounds import LONGEST, LONGEST_CURSOR
from marketplace.api.filters import OF_LISTS, OF_SEARCHES
from marketplace.api.log import LONGEST_NUMBER
from marketplace.judgement import KNOWN_VERDICTS
from marketplace.skills.agents import AGENTS
from vskill.openapi import (
    INTEGER,
    SHA256,
    TEXT,
    Schema,
    in_path,
    listed,
    operation,
    query,
    shape,
)


def text(name: str, description: str, longest: int = LONGEST, *, required: bool = False) -> dict[str, Any]:
    """Return the parameter ``name``, a text of at most ``longest`` characters, with its ``description``."""
    return query(name, {"type": "string", "maxLength": longest}, description, required=required)


def limit(default: int, highest: int) -> dict[str, Any]:
    """Return the parameter ``limit``, whose default and highest number are given."""
    # A higher number is no error: clients ask for all that they can get.
    bound: Schema = {"type": "integer", "minimum": 1, "default": default}
    return query("limit", bound, f"How many at most; {highest} are answered at most.")


def number(name: str, description: str, *, required: bool = False) -> dict[str, Any]:
    """Return a parameter that counts from 0."""
    bound: Schema = {"type": "integer", "minimum": 0, "maximum": 10**LONGEST_NUMBER - 1}
    return query(name, bound, description, required=required)


def get(name: str, summary: str, schema: Schema, *parameters: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the operation that answers GET with JSON of ``schema``; more arguments are those of ``operation``."""
    answers = {200: {"application/json": schema}, **more.pop("answers", {})}
    return {"get": operation(name, summary, answers, parameters=parameters, cached=more.pop("cached", True), **more)}


Q: Final = text("q", "Words to search for.")
CURSOR: Final = text("cursor", "The nextCursor of the page before.", LONGEST_CURSOR)
OWNER: Final = text("ownerHandle", "The handle of the publisher, which has to match.")
VERSION: Final = text("version", "The number of a version; the latest without it.")
TAG: Final = query("tag", {"type": "string", "enum": ["latest"]}, "The only tag is latest.")
_MEANINGS: Final = {
    "publisher": "Only skills of this publisher, by its handle or its short one.",
    "verdict": f"Only skills with this verdict: {', '.join(KNOWN_VERDICTS)}.",
    "capability": "Only skills that ask for this, such as executes or sends.",
    "agent": f"Only skills that say they are made for this agent: {', '.join(AGENTS)}.",
    "license": "Only skills with this licence, as they write it.",
    "tag": "Only skills with this tag.",
    "owner": "Another name of publisher.",
    "prefix": "Only skills whose names begin so.",
}
FILTERS: Final = tuple(text(name, _MEANINGS[name]) for name in OF_LISTS)
SEARCH_FILTERS: Final = tuple(text(name, _MEANINGS[name]) for name in OF_SEARCHES)
NONE: Final = (404, 410)
HASHES: Final = {"hashes": listed(TEXT)}
ENTRY: Final = shape({"index": INTEGER, "entry": TEXT})
SCANS: Final = {"version": TEXT, "contentHash": SHA256}
INERT: Final[dict[str, Schema]] = {"text/plain": TEXT, "application/octet-stream": {}}


SLUG: Final = in_path("slug", "The name of a skill in this registry.")
