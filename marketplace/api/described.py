"""What the API under ``/api/v1`` answers about published skills, route by route, as OpenAPI operations."""

from __future__ import annotations

from typing import Any, Final

from marketplace.api import described_shapes as shapes
from marketplace.api.bounds import (
    BLOCKLIST_LIMIT,
    COLLECTIONS_LIMIT,
    LIST_LIMIT,
    LONGEST_REPOSITORY,
    MOST_CHECKED,
    SEARCH_LIMIT,
    VSKILL_SEARCH_LIMIT,
)
from marketplace.api.described_parts import (
    CURSOR,
    ENTRY,
    FILTERS,
    HASHES,
    NONE,
    OWNER,
    SEARCH_FILTERS,
    SLUG,
    TAG,
    VERSION,
    Q,
    get,
    limit,
    number,
    text,
)
from marketplace.api.described_shapes import TEXT_OR_NULL
from marketplace.api.described_skill import of_one_skill
from marketplace.api.log import MOST_ENTRIES
from marketplace.catalog import SORTS
from vskill.openapi import (
    BOOLEAN,
    INTEGER,
    MOMENT,
    TEXT,
    in_path,
    listed,
    operation,
    query,
    shape,
)

# Clients of other makers ask here for what this registry does not have, and are told so in words.
NOT_DESCRIBED: Final = {
    "/api/v1/skills/-/{rest}": "calls of clawhub that are not offered",
    "/api/v1/skills/installs": "a report that vskill sends and that counts nothing",
    "/api/v1/skills/{slug}/installs": "a report that vskill sends and that counts nothing",
    "/api/v1/skills/@{owner}/{slug}/installs": "a report that vskill sends and that counts nothing",
    "/api/v1/skills/{owner}/{repo}/{slug}/installs": "a report that vskill sends and that counts nothing",
}


_UPDATE: Final = shape(
    {"name": TEXT, "installed": TEXT, "latest": TEXT_OR_NULL, "updateAvailable": BOOLEAN},
    {"certTier": TEXT, "withdrawn": {"const": True}, "flagged": {"const": True}, "diffSummary": TEXT},
)
_WHO: Final = shape(
    {
        "user": shape({**dict.fromkeys(("handle", "displayName", "role"), TEXT), "image": {"type": "null"}}),
        "token": shape({"name": TEXT, "scopes": listed(TEXT), "expiresAt": MOMENT}),
    }
)
_STARRED: Final = {"ok": {"const": True}, "starred": BOOLEAN, "alreadyStarred": BOOLEAN}
_UNSTARRED: Final = {"ok": {"const": True}, "unstarred": BOOLEAN, "alreadyUnstarred": BOOLEAN}
OPERATIONS: Final[dict[str, dict[str, Any]]] = {
    "/api/v1/search": get(
        "search",
        "Search for skills, the best first.",
        shapes.SEARCH,
        Q,
        limit(*SEARCH_LIMIT),
        query("mode", {"type": "string", "enum": ["exact"]}, "Look for one name only."),
        *SEARCH_FILTERS,
    ),
    "/api/v1/resolve": get(
        "resolve",
        "Return the version with a fingerprint, and the latest one.",
        shapes.RESOLVED,
        text("slug", "The name of a skill.", required=True),
        OWNER,
        text("hash", "A fingerprint."),
        errors=NONE,
    ),
    "/api/v1/download": {
        "get": operation(
            "download",
            "Download the archive of a version.",
            {200: {"application/zip": {}}},
            errors=NONE,
            parameters=(text("slug", "The name of a skill.", required=True), OWNER, VERSION, TAG),
            cached=True,
        )
    },
    "/api/v1/whoami": get("whoami", "Return whose token the request bears.", _WHO, cached=False),
    "/api/v1/stars/{slug}": {
        method: operation(
            name, summary, {200: {"application/json": shape(fields)}}, errors=NONE, parameters=(SLUG, OWNER)
        )
        for method, name, summary, fields in (
            ("post", "star", "Give a skill a star.", _STARRED),
            ("delete", "unstar", "Take a star back.", _UNSTARRED),
        )
    },
    "/api/v1/blocklist": get(
        "blocklist",
        "List blocked content and quarantined skills.",
        shape(
            {
                "entries": listed(shapes.BLOCK),
                "count": INTEGER,
                "lastUpdated": TEXT_OR_NULL,
                "nextCursor": shapes.CURSOR,
            }
        ),
        limit(*BLOCKLIST_LIMIT),
        CURSOR,
    ),
    "/api/v1/blocklist/check": get(
        "blocklistCheck",
        "Tell whether a skill or a repository must not be installed.",
        shape(
            {"blocked": BOOLEAN, "rejected": BOOLEAN},
            {"entry": shapes.BLOCK, "tainted": {"const": True}, "taintReason": TEXT},
        ),
        text("name", "The name of a skill."),
        text("repoUrl", "The address of a repository.", LONGEST_REPOSITORY),
    ),
    "/api/v1/log": get(
        "log",
        "Return the newest signed head of the log.",
        shape(
            {**dict.fromkeys(("origin", "rootHash", "checkpoint", "keyId"), TEXT), "size": INTEGER, "signedAt": MOMENT}
        ),
        errors=(404,),
    ),
    "/api/v1/log/checkpoint": {
        "get": operation(
            "logCheckpoint",
            "Return that head as a signed note.",
            {200: {"text/plain": TEXT}},
            errors=(404,),
            cached=True,
        )
    },
    "/api/v1/log/entries": get(
        "logEntries",
        f"Return entries of the log, at most {MOST_ENTRIES}.",
        shape({"size": INTEGER, "entries": listed(ENTRY)}),
        number("start", "The first entry."),
        number("end", "The entry to stop before."),
    ),
    "/api/v1/log/inclusion": get(
        "logInclusion",
        "Prove that an entry is in the log.",
        shape({"index": INTEGER, "size": INTEGER, **HASHES}),
        number("index", "The entry.", required=True),
        number("size", "The size of the tree; that of the signed head without it."),
        errors=(404,),
    ),
    "/api/v1/log/consistency": get(
        "logConsistency",
        "Prove that the log only grew.",
        shape({"first": INTEGER, "second": INTEGER, **HASHES}),
        number("first", "The size of the smaller tree, from 1.", required=True),
        number("second", "The size of the larger tree; that of the signed head without it."),
        errors=(404,),
    ),
    "/api/v1/collections": get(
        "collections",
        "List the collections.",
        shapes.COLLECTIONS,
        limit(*COLLECTIONS_LIMIT),
        CURSOR,
    ),
    "/api/v1/collections/{slug}": get(
        "collection", "Describe a collection.", shapes.COLLECTION, in_path("slug", "Its name."), errors=(404,)
    ),
    "/api/v1/skills": get(
        "skills",
        "List the published skills.",
        shapes.SKILLS,
        *(
            Q,
            limit(*LIST_LIMIT),
            CURSOR,
            text("sort", f"The order: updated without it, or {', '.join(SORTS)}; relevance needs words."),
            *FILTERS,
        ),
    ),
    "/api/v1/skills/search": get(
        "searchForVskill", "Search for skills.", shapes.VSKILL_SEARCH, Q, limit(*VSKILL_SEARCH_LIMIT), *SEARCH_FILTERS
    ),
    "/api/v1/skills/check-updates": {
        "post": operation(
            "checkUpdates",
            "Tell for each installed skill whether there is a newer version.",
            {200: {"application/json": shape({"results": listed(_UPDATE)})}},
            errors=(413,),
            body=shape(
                {
                    "skills": listed(shape({}, {"name": TEXT, "currentVersion": TEXT})) | {"maxItems": MOST_CHECKED},
                }
            ),
        )
    },
    **of_one_skill("/api/v1/skills/{slug}", (SLUG,), ""),
    **of_one_skill(
        "/api/v1/skills/@{owner}/{slug}",
        (in_path("owner", "The handle of a publisher, or its short one."), SLUG),
        "OfPublisher",
    ),
    **of_one_skill(
        "/api/v1/skills/{owner}/{repo}/{slug}",
        (in_path("owner", "The handle of a publisher."), in_path("repo", "The name of a repository."), SLUG),
        "InRepository",
    ),
}
