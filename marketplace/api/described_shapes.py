"""The JSON Schemas of what the API answers about skills, versions and collections."""

from __future__ import annotations

from typing import Final

from marketplace.search.text import MAX_QUERY_TERMS
from marketplace.skills.near_filters import FREE
from vskill.openapi import (
    BOOLEAN,
    INTEGER,
    MILLISECONDS,
    MOMENT,
    NULL,
    NUMBER,
    SHA256,
    TEXT,
    Schema,
    listed,
    or_null,
    shape,
)

TEXT_OR_NULL: Final = or_null(TEXT)
MOMENT_OR_NULL: Final = or_null(MOMENT)
CURSOR: Final = or_null({"type": "string", "description": "Of the next page; null on the last one."})
_ANY_OBJECT: Final[Schema] = {"type": "object"}

_LOOSENED: Final = or_null(shape({"words": listed(TEXT), "allButOne": BOOLEAN}))
_NOT_SEARCHED: Final[Schema] = {
    **listed(TEXT),
    "description": f"Words of the query that were not searched for: a search has at most {MAX_QUERY_TERMS}.",
}
_NEAR: Final[Schema] = {
    **shape({}, dict.fromkeys(FREE, listed(TEXT))),
    "description": "Of an empty answer: values that are near to that of a filter which no skill has.",
}
_SEARCHED: Final = {"loosened": _LOOSENED, "notSearched": _NOT_SEARCHED, "near": _NEAR}
OWNER: Final = shape({"handle": TEXT_OR_NULL, "displayName": TEXT_OR_NULL, "image": NULL})
_SKILL_FIELDS: Final = {
    **dict.fromkeys(("slug", "displayName", "summary", "description", "name", "currentVersion", "certTier"), TEXT),
    "topics": listed(TEXT),
    "tags": shape({}, {"latest": TEXT}),
    "stats": shape({}, {"downloads": INTEGER, "stars": INTEGER}),
    "createdAt": MILLISECONDS,
    "updatedAt": MILLISECONDS,
    "metadata": NULL,
    "trustTier": {"type": "string", "enum": ["T0", "T1", "T2", "T3", "T4"]},
    "isBlocked": BOOLEAN,
    "isTainted": BOOLEAN,
}
_PUBLISHED_FIELDS: Final = {
    **dict.fromkeys(("license", "verdict", "author", "ownerSlug", "repoSlug", "skillSlug", "repoUrl"), TEXT),
    **dict.fromkeys(("verdictWarning", "flagReason", "sourceNote"), TEXT_OR_NULL),
    "isSuspicious": BOOLEAN,
    "vskillInstalls": INTEGER,
}
_LATEST_FIELDS: Final = {"provenanceVerified": BOOLEAN, "commit": TEXT}
_VERSION_FIELDS: Final = {
    **dict.fromkeys(("version", "changelog", "changelogSource", "spdx", "commit", "verdict"), TEXT),
    **dict.fromkeys(("ref", "verdictWarning", "flagReason"), TEXT_OR_NULL),
    "createdAt": MILLISECONDS,
    "license": NULL,
    "contentHash": SHA256,
}
_YANKED_FIELDS: Final = {"yanked": BOOLEAN, "yankReason": TEXT}
VERSION: Final = shape(_VERSION_FIELDS, _YANKED_FIELDS)
_VSKILL_VERSION: Final = shape(
    {
        **dict.fromkeys(("version", "certTier", "diffSummary"), TEXT),
        "createdAt": MOMENT,
        "contentHash": SHA256,
        "yanked": BOOLEAN,
    }
)
_CONTRACT_FIELDS: Final = {
    "contract": or_null(shape({"declares": {}, "does": listed(_ANY_OBJECT), "chains": listed(_ANY_OBJECT)})),
    "references": or_null(shape({"items": listed(_ANY_OBJECT), "notListed": {}})),
    "leftUnread": BOOLEAN,
}
_MODERATION_FIELDS: Final = {
    "isSuspicious": BOOLEAN,
    "isMalwareBlocked": BOOLEAN,
    "verdict": {"type": "string", "enum": ["clean", "suspicious"]},
    "reasonCodes": listed(TEXT),
    "summary": TEXT_OR_NULL,
    "engineVersion": TEXT_OR_NULL,
    "updatedAt": MILLISECONDS,
}
_EVIDENCE: Final = shape({**dict.fromkeys(("code", "severity", "file", "message", "evidence"), TEXT), "line": INTEGER})
FOUND: Final = shape(
    {
        **dict.fromkeys(("slug", "displayName", "summary", "version", "ownerHandle"), TEXT),
        "score": NUMBER,
        "downloads": INTEGER,
        "updatedAt": MILLISECONDS,
        "owner": OWNER,
    }
)
SEARCH: Final = shape({"results": listed(FOUND), **_SEARCHED})
VSKILL_SEARCH: Final = shape(
    {
        "results": listed(shape({**_SKILL_FIELDS, **_PUBLISHED_FIELDS, "score": NUMBER})),
        "pagination": shape({"hasMore": BOOLEAN}),
        **_SEARCHED,
    }
)
SKILLS: Final = shape(
    {
        "items": listed(
            shape(
                {**_SKILL_FIELDS, **_PUBLISHED_FIELDS, "ownerHandle": TEXT},
                {**_LATEST_FIELDS, "latestVersion": VERSION},
            )
        ),
        "nextCursor": CURSOR,
        **_SEARCHED,
    }
)
# The lines that the page of a skill or of a collection shows.
_LINES: Final = listed(shape({"client": TEXT, "command": TEXT}))
# A withheld skill has none of the fields that its author wrote.
SKILL: Final = shape(
    {
        "skill": shape(_SKILL_FIELDS, {**_PUBLISHED_FIELDS, **_LATEST_FIELDS, "content": TEXT, "sha": SHA256}),
        "latestVersion": or_null(VERSION),
        "metadata": NULL,
        "owner": or_null(OWNER),
        "moderation": or_null(shape(_MODERATION_FIELDS)),
    },
    {**_CONTRACT_FIELDS, "install": _LINES, "blocked": {"const": True}},
)
VERSIONS: Final = shape({"items": listed(VERSION), "versions": listed(_VSKILL_VERSION), "nextCursor": CURSOR})
_FILE: Final = shape({"path": TEXT, "size": INTEGER, "sha256": SHA256, "contentType": TEXT})
_SECURITY: Final = shape({"status": TEXT, "hasWarnings": BOOLEAN, "checkedAt": MILLISECONDS, "model": NULL})
ONE_VERSION: Final = shape(
    {
        "version": shape(
            {**_VERSION_FIELDS, "files": listed(_FILE), "security": _SECURITY, **_CONTRACT_FIELDS}, _YANKED_FIELDS
        ),
        "skill": shape({"slug": TEXT, "displayName": TEXT}),
    }
)
_NUMBERED: Final = or_null(shape({"version": TEXT}))
RESOLVED: Final = shape({"slug": TEXT, "match": _NUMBERED, "latestVersion": _NUMBERED})
INSTALL: Final = shape(
    {
        "ok": {"const": True},
        "slug": TEXT,
        "installKind": {"const": "archive"},
        "archive": shape({"version": TEXT, "downloadUrl": TEXT}),
    }
)
NO_INSTALL: Final = shape(
    {"ok": {"const": False}, "slug": TEXT, "reason": TEXT, "message": TEXT, "status": {"const": 410}}
)
MODERATED: Final = shape(
    {"moderation": or_null(shape({**_MODERATION_FIELDS, "legacyReason": NULL, "evidence": listed(_EVIDENCE)}))},
    {"verdictWarning": TEXT},
)
VERIFIED: Final = shape(
    {
        **dict.fromkeys(("slug", "displayName", "pageUrl", "publisherProfileUrl", "version"), TEXT),
        "schema": {"const": "clawhub.skill.verify.v1"},
        "ok": BOOLEAN,
        "decision": {"enum": ["pass", "fail"]},
        "reasons": listed(TEXT),
        "publisherHandle": TEXT_OR_NULL,
        "publisherDisplayName": NULL,
        "resolvedFrom": {"enum": ["version", "tag", "latest"]},
        "tag": TEXT_OR_NULL,
        "createdAt": MILLISECONDS,
        "card": shape({"available": BOOLEAN}),
        "artifact": shape({"kind": {"const": "zip"}, "sha256": SHA256, "size": INTEGER}),
        "provenance": shape({"repository": TEXT, "path": TEXT, "commit": TEXT, "ref": TEXT_OR_NULL}),
        "security": shape(
            {
                **dict.fromkeys(("status", "summary", "scanVerdict"), TEXT),
                "scannedAt": MILLISECONDS,
                "scannedAgain": BOOLEAN,
                "engines": listed(_ANY_OBJECT),
                "findings": listed(_EVIDENCE),
            }
        ),
        "signature": shape(
            {"status": {"enum": ["signed", "pending", "unsigned", "untrusted"]}},
            {
                **dict.fromkeys(
                    ("reason", "keyId", "modelSignatureKeyId", "statement", "modelSignature", "keys"), TEXT
                ),
                "signedAt": MILLISECONDS,
            },
        ),
    }
)
_COLLECTION_FIELDS: Final = {
    **dict.fromkeys(("slug", "title", "purpose", "page"), TEXT),
    "createdAt": MILLISECONDS,
    "updatedAt": MILLISECONDS,
    "skillCount": INTEGER,
}
COLLECTIONS: Final = shape({"items": listed(shape(_COLLECTION_FIELDS)), "nextCursor": CURSOR})
_MEMBER: Final = shape(
    {
        **dict.fromkeys(("slug", "displayName", "description", "version", "verdict", "page"), TEXT),
        **dict.fromkeys(("note", "verdictWarning"), TEXT_OR_NULL),
        **dict.fromkeys(("pinned", "isSuspicious", "installedAsOne"), BOOLEAN),
        "archive": shape({"url": TEXT, "sha256": SHA256, "size": INTEGER}),
        "capabilities": or_null(listed(TEXT)),
        "leftUnread": BOOLEAN,
    }
)
COLLECTION: Final = shape(
    {
        **_COLLECTION_FIELDS,
        "skills": listed(_MEMBER),
        "withdrawn": INTEGER,
        "touches": {"type": "object", "additionalProperties": or_null(BOOLEAN)},
        "install": _LINES,
        "index": TEXT,
    }
)
BLOCK: Final = shape(
    {
        **dict.fromkeys(("skillName", "threatType", "severity", "reason", "discoveredAt"), TEXT),
        "evidenceUrls": listed(TEXT),
    },
    {"sourceUrl": TEXT, "contentHash": TEXT},
)
