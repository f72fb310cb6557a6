"""The schemas that the descriptions of several calls about submissions share."""

from __future__ import annotations

from typing import Final

from submissions.states import State
from vskill.openapi import MOMENT, TEXT, Schema, in_path, or_null, shape

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
