"""What the API answers about one skill, for both forms of its address."""

from __future__ import annotations

from typing import Any, Final

from marketplace.api import described_shapes as shapes
from marketplace.api.bounds import LIST_LIMIT
from marketplace.api.described_parts import CURSOR, ENTRY, INERT, NONE, OWNER, SCANS, TAG, VERSION, get, limit, text
from marketplace.api.described_shapes import MOMENT_OR_NULL, TEXT_OR_NULL
from vskill.openapi import (
    BOOLEAN,
    INTEGER,
    MOMENT,
    TEXT,
    Schema,
    in_path,
    listed,
    operation,
    or_null,
    shape,
)

_EXTERNAL: Final = shape(
    {
        **dict.fromkeys(("provider", "state", "requestedAt"), TEXT),
        **dict.fromkeys(("engineVersion", "startedAt", "finishedAt", "error"), TEXT_OR_NULL),
        "findings": listed({}),
    }
)
_NEIGHBOUR: Final = {
    **dict.fromkeys(("slug", "displayName", "ownerHandle", "version", "verdict", "page"), TEXT),
    "share": {"type": "number", "minimum": 0, "maximum": 1},
    **dict.fromkeys(("sameText", "publishedEarlier"), BOOLEAN),
    "firstPublishedAt": MOMENT_OR_NULL,
    "verdictWarning": TEXT_OR_NULL,
}
_ALIKE: Final = shape(
    {
        **dict.fromkeys(("slug", "version"), TEXT),
        "origin": or_null(shape({"relation": {"enum": ["copyOf", "derivedFrom"]}, **_NEIGHBOUR})),
        "items": listed(shape(_NEIGHBOUR)),
    }
)
_PAST: Final = shape(
    {
        "scanner": TEXT_OR_NULL,
        "outcome": TEXT_OR_NULL,
        "engines": listed({"type": "object"}),
        "findings": {"type": "object"},
        "firstAt": MOMENT,
        "lastAt": MOMENT,
        "times": INTEGER,
        "published": BOOLEAN,
    }
)
_HEALTH: Final = shape(
    {"slug": TEXT, "repoUrl": TEXT, "status": TEXT_OR_NULL},
    {
        "since": MOMENT,
        "checkedAt": MOMENT,
        "lastCommitAt": MOMENT_OR_NULL,
        "lastSeenAt": MOMENT_OR_NULL,
        "reason": TEXT_OR_NULL,
    },
)
_PROVENANCE: Final = shape(
    {
        "skill": TEXT,
        "version": TEXT,
        "signing": BOOLEAN,
        "statement": or_null({"type": "object"}),
        "log": listed(ENTRY),
    },
    {
        **dict.fromkeys(("keyId", "modelSignature", "modelSignatureKeyId"), TEXT),
        "signedAt": MOMENT,
        "trusted": BOOLEAN,
        "compromisedSince": MOMENT_OR_NULL,
    },
)


def of_one_skill(address: str, named: tuple[dict[str, Any], ...], end: str) -> dict[str, dict[str, Any]]:
    """Return the operations on one skill; ``end`` tells the names of two forms of its address apart."""

    def read(name: str, summary: str, schema: Schema, *parameters: dict[str, Any], **more: Any) -> dict[str, Any]:
        own = () if end else (OWNER,)
        return get(f"{name}{end}", summary, schema, *named, *own, *parameters, **{"errors": NONE, **more})

    compared = (
        text("from", "The number of the version before.", required=True),
        text("to", "The number of the version after.", required=True),
    )
    change = shape(
        {
            **dict.fromkeys(("filename", "status", "patch"), TEXT),
            "additions": INTEGER,
            "deletions": INTEGER,
            "tooLarge": BOOLEAN,
        }
    )
    file = text("path", "The path of the file in the archive.", required=True)
    return {
        address: read("skill", "Describe a skill.", shapes.SKILL),
        f"{address}/versions": read(
            "versions", "List the versions of a skill, the newest first.", shapes.VERSIONS, limit(*LIST_LIMIT), CURSOR
        ),
        f"{address}/versions/diff": read(
            "difference",
            "Summarise what changed between two versions.",
            shape(dict.fromkeys(("from", "to", "diffSummary", "contentDiff"), TEXT)),
            *compared,
        ),
        f"{address}/versions/compare": read(
            "comparison",
            "List the files that changed between two versions.",
            shape({"source": TEXT, "files": listed(change)}),
            *compared,
        ),
        f"{address}/versions/{{version}}": read(
            "version",
            "Describe a version with its files and its scan.",
            shapes.ONE_VERSION,
            in_path("version", "The number of a version."),
        ),
        f"{address}/file": {
            "get": operation(
                f"file{end}",
                "Read one file of a version.",
                {200: INERT},
                errors=NONE,
                parameters=(*named, *(() if end else (OWNER,)), file, VERSION, TAG),
                cached=True,
            )
        },
        f"{address}/install": read(
            "install",
            "Tell where the archive is that installs a skill.",
            shapes.INSTALL,
            answers={410: {"application/json": shapes.NO_INSTALL, "text/plain": TEXT}},
        ),
        f"{address}/moderation": read("moderation", "Return the findings of the newest scan.", shapes.MODERATED),
        f"{address}/verify": read("verify", "Return what is known about a version.", shapes.VERIFIED, VERSION, TAG),
        f"{address}/external-scans": read(
            "externalScans",
            "Return the newest scan of a version by each outside scanner.",
            shape({**SCANS, "items": listed(_EXTERNAL)}),
            *(VERSION, TAG),
        ),
        f"{address}/scans": read(
            "scans",
            "Return what each scan of a version came to.",
            shape({**SCANS, "items": listed(_PAST)}),
            *(VERSION, TAG),
        ),
        f"{address}/alike": read("alike", "Return the skills with the same or similar text.", _ALIKE, *(VERSION, TAG)),
        f"{address}/repo-health": read("repoHealth", "Return whether the repository of a skill answers.", _HEALTH),
        f"{address}/provenance": read("provenance", "Return what is signed of a version.", _PROVENANCE, VERSION, TAG),
    }
