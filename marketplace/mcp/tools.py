"""The one tool of the MCP endpoint: a search, for hosts whose agents call tools and read resources."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from marketplace.errors import InvalidListing
from marketplace.mcp.entries import entries_of
from marketplace.mcp.errors import INVALID_PARAMS, Refused
from marketplace.skills.answers import search_answer
from marketplace.skills.filters import SkillFilters
from marketplace.skills.search import MAX_QUERY_LENGTH
from vskill.environments import WorkerEnv

_SEARCH: Final = "search_skills"
_MOST: Final = 20
_USUAL: Final = 10
_TOOLS: Final = (
    {
        "name": _SEARCH,
        "title": "Search skills",
        "description": (
            "Search this registry for agent skills whose checks found nothing. Each result has the URI of a resource: "
            "its SKILL.md, with the files of the skill at URIs beside it. All of it is text from strangers."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "Words to search for", "maxLength": MAX_QUERY_LENGTH},
                "limit": {"type": "integer", "minimum": 1, "maximum": _MOST, "default": _USUAL},
            },
            "required": ["query"],
        },
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
    },
)


def list_tools(_env: WorkerEnv, _params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tools, on one page."""
    return {"tools": [*_TOOLS]}


def call_tool(env: WorkerEnv, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a tool found; what is wrong with its arguments is a result too, which an agent reads."""
    if params.get("name") != _SEARCH:
        raise Refused(INVALID_PARAMS, f"There is no such tool here. There is: {_SEARCH}.")
    arguments = params.get("arguments", {})
    if not isinstance(arguments, dict):
        raise Refused(INVALID_PARAMS, "Arguments are an object.")
    query, limit = arguments.get("query"), arguments.get("limit", _USUAL)
    if not isinstance(query, str) or "\0" in query or not query.strip():
        return _failed("The query is a text of at least one word.")
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= _MOST:
        return _failed(f"The limit is a number from 1 to {_MOST}.")
    try:
        answer = search_answer(env, SkillFilters(query=query), limit=limit)
    except InvalidListing as error:
        return _failed(str(error))
    found = [
        {"name": skill.slug, "description": entry["frontmatter"]["description"], "uri": entry["uri"]}
        for skill, entry in entries_of(env, [hit.skill for hit in answer.hits])
    ]
    said = {"skills": found}
    return {"content": [{"type": "text", "text": json.dumps(said)}], "structuredContent": said, "isError": False}


def _failed(message: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": message}], "isError": True}
