"""What the calls of reviewers and operators answer, as OpenAPI operations."""

from __future__ import annotations

from typing import Any, Final

from marketplace.operations import OPERATIONS as OF_SKILLS
from marketplace.skills.blocklist import BlockKind
from submissions.api.described_shapes import ID, NEXT_CURSOR, STEP, SUBMISSION_FIELDS, TEXT_OR_NULL, paged
from submissions.api.staff.calls import (
    DEFAULT_PAGE,
    LONGEST_REASON,
    LONGEST_TEXT,
    MOST_ON_PAGE,
    SEEN_DIGITS,
)
from submissions.api.staff.operating import SUBMISSION_OPERATIONS
from submissions.review.decide import DECISIONS
from submissions.review.queue import FILTERS
from submissions.states import State
from vskill.openapi import (
    BOOLEAN,
    INTEGER,
    JSON_ERROR,
    MOMENT,
    SHA256,
    TEXT,
    Schema,
    in_path,
    listed,
    operation,
    or_null,
    query,
    shape,
)

_SEEN: Final[Schema] = {
    "type": "integer",
    "minimum": 1,
    "maximum": 10**SEEN_DIGITS - 1,
    "description": "The version that was looked at; a change meanwhile is answered with 409.",
}
_REASON: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": LONGEST_REASON}
_MOVED: Final = {**SUBMISSION_FIELDS, "seen": _SEEN}
_REVIEWED: Final = {**_MOVED, "toReview": BOOLEAN, "appealed": BOOLEAN, "approvedBy": TEXT_OR_NULL}
_FINDING: Final = shape(
    {
        **dict.fromkeys(("ruleId", "severity", "kind", "title", "file", "excerpt", "why", "advice", "engine"), TEXT),
        "line": or_null(INTEGER),
        "holds": BOOLEAN,
    },
    {"waived": TEXT},
)
_WAITING: Final = shape(
    {
        **dict.fromkeys(("id", "state", "skillName", "skillPath", "repoUrl", "strength", "reviewUrl"), TEXT),
        "seen": _SEEN,
        "verdict": TEXT_OR_NULL,
        "submittedAt": MOMENT,
    }
)
_SKILL: Final = {
    **dict.fromkeys(("slug", "standing", "audience", "repoUrl"), TEXT),
    "seen": _SEEN,
    "latestVersion": TEXT_OR_NULL,
}
_VERSION: Final = shape(
    {
        **dict.fromkeys(("version", "verdict", "commit"), TEXT),
        **dict.fromkeys(("yanked", "quarantined"), TEXT_OR_NULL),
        "contentHash": SHA256,
        "createdAt": MOMENT,
    }
)
_EVENT: Final = shape({**dict.fromkeys(("actor", "action", "reason"), TEXT), "version": TEXT_OR_NULL, "at": MOMENT})
_KIND: Final[Schema] = {"type": "string", "enum": [str(kind) for kind in BlockKind]}
_BLOCK_FIELDS: Final = {"kind": _KIND, **dict.fromkeys(("value", "reason", "actor", "createdAt"), TEXT)}
_TO_BLOCK: Final = shape(
    {"kind": _KIND, "value": {"type": "string", "minLength": 1, "maxLength": LONGEST_TEXT}, "reason": _REASON}
)
_COUNT: Final = shape({"count": INTEGER, "orMore": BOOLEAN})
_QUEUE: Final = shape(
    {
        **dict.fromkeys(("waiting", "delayed", "leased", "parked", "consumers"), INTEGER),
        "oldestAt": or_null(MOMENT),
        "paused": or_null(shape({"by": TEXT, "reason": TEXT, "until": or_null(MOMENT)})),
        "states": shape({str(state): _COUNT for state in State}),
    }
)


def _get(name: str, summary: str, schema: Schema, *parameters: dict[str, Any], absent: bool = False) -> dict[str, Any]:
    answers = {200: {"application/json": schema}}
    return operation(
        name, summary, answers, errors=(404,) if absent else (), json_errors=True, parameters=parameters
    ) | {"security": [{"token": []}]}


def _post(
    name: str, summary: str, schema: Schema, body: Schema, *parameters: dict[str, Any], conflict: Schema | None = None
) -> dict[str, Any]:
    answers: dict[int, dict[str, Schema]] = {200: {"application/json": schema}}
    if conflict is not None:
        answers[409] = {"application/json": {"anyOf": [JSON_ERROR, conflict]}}
    return operation(
        name,
        summary,
        answers,
        errors=(404, 409, 413) if parameters else (409, 413),
        json_errors=True,
        body=body,
        parameters=parameters,
    ) | {"security": [{"token": []}]}


def _beside(name: str, fields: dict[str, Schema]) -> Schema:
    """Return the schema of a conflict, which has the present state of what was to be changed beside the message."""
    return shape({"error": TEXT, "message": TEXT, name: shape(fields)})


_SLUG: Final = in_path("slug", "The name of a skill.")
OPERATIONS: Final[dict[str, dict[str, Any]]] = {
    "/api/v1/review": {
        "get": _get(
            "review",
            "List what waits for a reviewer, the strongest first.",
            shape({"items": listed(_WAITING), "waiting": INTEGER, "nextCursor": NEXT_CURSOR}),
            *(
                query(name, {"type": "string", "maxLength": LONGEST_TEXT}, f"Only those of this {name}.")
                for name in FILTERS
            ),
            *paged(DEFAULT_PAGE, MOST_ON_PAGE),
        )
    },
    "/api/v1/review/{submission_id}": {
        "get": _get(
            "reviewOne",
            "Return a submission with its findings.",
            shape({**_REVIEWED, "findings": listed(_FINDING), "history": listed(STEP)}),
            ID,
            absent=True,
        )
    },
    "/api/v1/review/{submission_id}/decision": {
        "post": _post(
            "decide",
            "Decide about a submission that is held, or about an appeal.",
            shape(_REVIEWED),
            shape({"decision": {"type": "string", "enum": list(DECISIONS)}, "reason": _REASON, "seen": _SEEN}),
            ID,
            conflict=_beside("submission", _REVIEWED),
        )
    },
    "/api/v1/review/{submission_id}/undo": {
        "post": _post(
            "undo",
            "Take back one's own decision, as long as nothing followed from it.",
            shape(_REVIEWED),
            shape({"reason": _REASON, "seen": _SEEN}),
            ID,
            conflict=_beside("submission", _REVIEWED),
        )
    },
    "/api/v1/operate/queue": {"get": _get("queue", "Return the numbers of the queue.", _QUEUE)},
    "/api/v1/operate/submissions/{submission_id}": {
        "get": _get(
            "operateSubmissionRead",
            "Return a submission as operators see it.",
            shape({**_MOVED, "history": listed(STEP)}),
            ID,
            absent=True,
        ),
        "post": _post(
            "operateSubmission",
            "Check a submission again, or take it out of the queue.",
            shape(_MOVED),
            shape(
                {
                    "operation": {"type": "string", "enum": list(SUBMISSION_OPERATIONS)},
                    "reason": _REASON,
                    "seen": _SEEN,
                }
            ),
            ID,
            conflict=_beside("submission", _MOVED),
        ),
    },
    "/api/v1/operate/skills/{slug}": {
        "get": _get(
            "operateSkillRead",
            "Return a skill with its versions and its history as operators see them.",
            shape({**_SKILL, "versions": listed(_VERSION), "history": listed(_EVENT), "nextCursor": NEXT_CURSOR}),
            _SLUG,
            *paged(DEFAULT_PAGE, MOST_ON_PAGE),
            absent=True,
        ),
        "post": _post(
            "operateSkill",
            "Withdraw a skill or a version, or bring it back.",
            shape(_SKILL),
            shape(
                {"operation": {"type": "string", "enum": list(OF_SKILLS)}, "reason": _REASON, "seen": _SEEN},
                {"version": TEXT},
            ),
            _SLUG,
            conflict=_beside("skill", _SKILL),
        ),
    },
    "/api/v1/operate/blocks": {
        "get": _get(
            "blocks",
            "List the block list.",
            shape({"items": listed(shape(_BLOCK_FIELDS)), "nextCursor": NEXT_CURSOR}),
            *paged(DEFAULT_PAGE, MOST_ON_PAGE),
        ),
        "post": _post(
            "block",
            "Block a repository, an owner or a content; what is blocked already stays as it is.",
            shape({**_BLOCK_FIELDS, "changed": BOOLEAN}),
            _TO_BLOCK,
        ),
    },
    "/api/v1/operate/blocks/remove": {
        "post": _post(
            "unblock",
            "Take a value off the block list.",
            shape({"kind": _KIND, "value": TEXT, "changed": BOOLEAN}),
            _TO_BLOCK,
        )
    },
}
