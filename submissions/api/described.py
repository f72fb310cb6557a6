"""What the API under ``/api/v1`` answers about submissions, as OpenAPI operations, and the document of all of them."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Final

from django.http import HttpResponseBase

from marketplace.api import described
from marketplace.api.http import SAFE, ApiCall, api_view, tagged_response
from submissions.api import described_clawhub
from submissions.api.described_shapes import ID, NEXT_CURSOR, STATE, STEP, SUBMISSION_FIELDS, TEXT_OR_NULL, paged
from submissions.api.many import LONGEST_WORDS, MAX_PAGE
from submissions.api.staff import described as of_staff
from submissions.api.views import MAX_PAGE as MOST_SUBMISSIONS
from submissions.jobs.progress import STANDINGS
from submissions.listings import PAGE
from submissions.store.queries import INDEX_PAGE
from vskill.openapi import (
    BOOLEAN,
    INTEGER,
    TEXT,
    Schema,
    document,
    in_path,
    listed,
    operation,
    query,
    shape,
)

# Each sender signs what it sends in a form of its own.
NOT_DESCRIBED: Final = {
    "/api/v1/external-scans/{scan_id}": "what scanners outside the registry send back, as docs/scanning.md has it",
    "/api/v1/webhooks/{sender}": "what git hosts send, in their own form",
    "/api/v1/openapi.json": "the description itself",
}
_AUDIENCE: Final[Schema] = {
    **TEXT,
    "description": "To whom the skills are shown: public, members or a team of the sender, within what policy says of "
    "their source. By default it is what policy says. An answer with null says that nobody chose.",
}
_PAGED: Final = paged(PAGE, MAX_PAGE)
_JOB_FIELDS: Final = {
    **dict.fromkeys(("id", "state", "repoUrl", "commitSha", "statusUrl", "apiUrl", "createdAt", "updatedAt"), TEXT),
    "failure": TEXT_OR_NULL,
    "sourceRef": TEXT_OR_NULL,
    "audience": TEXT_OR_NULL,
    "total": INTEGER,
}
_STARTED_FIELDS: Final = {**_JOB_FIELDS, "job": TEXT, "stopKey": TEXT}
_COUNTS: Final[Schema] = {"type": "object", "additionalProperties": INTEGER}
_LINE: Final = shape(
    {
        **dict.fromkeys(("skillPath", "skillName"), TEXT),
        **dict.fromkeys(("outcome", "reason", "submissionId", "state", "statusUrl"), TEXT_OR_NULL),
    }
)
_FOUND: Final = shape(
    {
        **dict.fromkeys(("skillName", "skillPath", "description", "wouldBe"), TEXT),
        **dict.fromkeys(("problems", "notes", "alsoAt"), listed(TEXT)),
        "internal": BOOLEAN,
        "reserved": TEXT_OR_NULL,
        "plannedSlug": TEXT_OR_NULL,
        "plainSlugHeldBy": TEXT_OR_NULL,
        "continues": {},
    }
)
_LISTING: Final = shape(
    {
        **dict.fromkeys(("id", "repoUrl", "commitSha"), TEXT),
        "sourceRef": TEXT_OR_NULL,
        "total": INTEGER,
        "matching": INTEGER,
        "nextCursor": NEXT_CURSOR,
        "folders": listed(shape({"path": TEXT, "skills": INTEGER})),
        "skills": listed(_FOUND),
    }
)
_ACCEPTED: Final = {
    "outcome": TEXT,
    "skillName": TEXT,
    "skillPath": TEXT,
    "reason": TEXT,
    "notes": listed(TEXT),
    "duplicate": BOOLEAN,
    "submissionId": TEXT,
    "alreadyVerified": BOOLEAN,
    "blocked": BOOLEAN,
}
_ANY_ANSWER: Final = shape(
    {},
    {
        **{name: {} for name in (*SUBMISSION_FIELDS, *_STARTED_FIELDS, *_ACCEPTED)},
        "commitSha": TEXT,
        "dryRun": BOOLEAN,
        "skills": listed(_FOUND),
        "error": TEXT,
        "message": TEXT,
        "submissions": listed(shape({}, {**SUBMISSION_FIELDS, **_ACCEPTED})),
    },
)
_ASKED: Final = shape(
    {
        **dict.fromkeys(("slug", "version", "contentHash", "message", "engines", "verifyUrl", "externalUrl"), TEXT),
        "asked": BOOLEAN,
        "external": listed(shape({"provider": TEXT, "state": TEXT, "requestedAt": TEXT})),
    }
)
_REPOSITORY: Final = shape({"repoUrl": TEXT}, {"folder": TEXT})


def _json(status: int, schema: Schema) -> dict[int, dict[str, Schema]]:
    return {status: {"application/json": schema}}


def _get(name: str, summary: str, schema: Schema, *parameters: dict[str, Any], **more: Any) -> dict[str, Any]:
    return operation(name, summary, _json(200, schema), parameters=parameters, json_errors=True, cached=True, **more)


def _post(
    name: str, summary: str, answers: dict[int, dict[str, Schema]], body: Schema, *parameters: dict[str, Any]
) -> dict[str, Any]:
    errors = (404, 413, 422)
    return operation(name, summary, answers, errors=errors, json_errors=True, body=body, parameters=parameters)


OPERATIONS: Final[dict[str, dict[str, Any]]] = {
    "/api/v1/submissions": {
        "get": _get(
            "submissions",
            "List the submissions, the newest first.",
            shape(
                {
                    "nextCursor": NEXT_CURSOR,
                    "items": listed(
                        shape({**dict.fromkeys(("id", "repoUrl", "skillName", "skillPath"), TEXT), "state": STATE})
                    ),
                }
            ),
            query("repoUrl", TEXT, "Only those of this repository."),
            *paged(INDEX_PAGE, MOST_SUBMISSIONS),
        ),
        "post": _post(
            "submit",
            "Submit the skills of a repository, or list them with dryRun.",
            {**_json(200, _ANY_ANSWER), **_json(202, _ANY_ANSWER), **_json(422, _ANY_ANSWER)},
            shape(
                {"repoUrl": TEXT},
                {"skillPath": TEXT, "skillName": TEXT, "dryRun": BOOLEAN, "audience": _AUDIENCE},
            ),
        ),
    },
    "/api/v1/submissions/{submission_id}": {
        "get": _get(
            "submission",
            "Return a submission with its steps.",
            shape({**SUBMISSION_FIELDS, "withdrawn": TEXT_OR_NULL, "history": listed(STEP)}),
            ID,
            errors=(404,),
        )
    },
    "/api/v1/skills/{slug}/scan-again": {
        "post": _post(
            "scanAgain",
            "Ask for another scan of a version.",
            {**_json(200, _ASKED), **_json(202, _ASKED)},
            shape({}, {"version": TEXT}),
            in_path("slug", "The name of a skill."),
        )
    },
    "/api/v1/listings": {
        "post": _post("list", "List the skills of a repository.", _json(201, _LISTING), _REPOSITORY, *_PAGED)
    },
    "/api/v1/listings/{listing_id}": {
        "get": _get(
            "listing",
            "Return a page of such a list.",
            _LISTING,
            in_path("listing_id", "The id of the list."),
            *_PAGED,
            query("folder", TEXT, "Only the skills below this folder."),
            query("q", {"type": "string", "maxLength": LONGEST_WORDS}, "Only skills with these words."),
            errors=(404,),
        )
    },
    "/api/v1/jobs": {
        "post": _post(
            "startJob",
            "Submit the skills of a repository as one job.",
            _json(202, shape(_STARTED_FIELDS)),
            shape({"repoUrl": TEXT}, {"folder": TEXT, "audience": _AUDIENCE}),
        )
    },
    "/api/v1/jobs/{job_id}": {
        "get": _get(
            "job",
            "Return how far a job is, with a page of its skills.",
            shape(
                {
                    **_JOB_FIELDS,
                    "handled": INTEGER,
                    "finished": {},
                    "outcomes": _COUNTS,
                    "standings": _COUNTS,
                    "skills": listed(_LINE),
                    "nextCursor": NEXT_CURSOR,
                }
            ),
            in_path("job_id", "The id of a job."),
            *_PAGED,
            query("standing", {"type": "string", "enum": [str(one) for one in STANDINGS]}, "Only these."),
            errors=(404,),
        )
    },
    "/api/v1/jobs/{job_id}/stop": {
        "post": _post(
            "stopJob",
            "Stop a job, with the key that was given to whoever started it.",
            _json(202, shape(_JOB_FIELDS)),
            shape({"stopKey": TEXT}),
            in_path("job_id", "The id of a job."),
        )
    },
    **of_staff.OPERATIONS,
}
TABLES: Final = (described.OPERATIONS, OPERATIONS, described_clawhub.OPERATIONS)
"""The operations of all routes under ``/api/v1``, as ``document`` takes them."""


@cache
def _text() -> str:
    return json.dumps(document(*TABLES), indent=1)


@api_view(*SAFE)
def openapi(call: ApiCall) -> HttpResponseBase:
    """Return the OpenAPI document of the routes under ``/api/v1``."""
    return tagged_response(call, _text(), "application/json")
