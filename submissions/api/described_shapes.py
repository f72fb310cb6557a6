"""The schemas that the descriptions of several calls about submissions share."""

from __future__ import annotations

from typing import Any, Final

from submissions.states import State
from vskill.openapi import MOMENT, TEXT, Schema, in_path, or_null, query, shape

TEXT_OR_NULL: Final = or_null(TEXT)
STATE: Final[Schema] = {"type": "string", "enum": [str(state) for state in State]}
ID: Final = in_path("submission_id", "The id of a submission.")
SUBMISSION_FIELDS: Final = {
    **dict.fromkeys(("id", "status", "stateLabel", "explanation", "reason", "repoUrl"), TEXT),
    **dict.fromkeys(("skillName", "skillPath", "statusUrl", "createdAt", "updatedAt"), TEXT),
    **dict.fromkeys(("commitSha", "sourceRef", "contentHash", "verdict", "slug", "version", "skillUrl"), TEXT_OR_NULL),
    "state": STATE,
    "audience": TEXT_OR_NULL,
    "decision": or_null({"type": "object"}),
    "appeal": or_null(shape({"text": TEXT, "at": TEXT, "answer": TEXT_OR_NULL, "words": TEXT_OR_NULL})),
}
STEP: Final = shape({**dict.fromkeys(("to", "reason", "actor", "trigger"), TEXT), "from": TEXT_OR_NULL, "at": MOMENT})
NEXT_CURSOR: Final = or_null({"type": "string", "description": "Of the next page; null on the last one."})


def paged(default: int, highest: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters of a list with pages of ``default`` rows, and ``highest`` at most."""
    limit: Schema = {"type": "integer", "minimum": 1, "default": default}
    return (
        query("cursor", TEXT, "The nextCursor of the page before."),
        query("limit", limit, f"How many at most; {highest} are answered at most."),
    )
