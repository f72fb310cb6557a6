"""What the calls answer by which clawhub uploads, withdraws, hands over and scans, as OpenAPI operations."""

from __future__ import annotations

from typing import Any, Final

from submissions.uploads.bundle import LIMITS
from vskill.openapi import (
    BOOLEAN,
    INTEGER,
    MILLISECONDS,
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

_OK: Final = {"ok": {"const": True}}
_SLUG: Final = in_path("slug", "The name of a skill.")
_VERSION: Final = in_path("version", "The number of a version.")
_SCAN_ID: Final = in_path("scan_id", "The id of a scan, by its answer.")
_OWNER: Final = query("ownerHandle", TEXT, "The handle of the publisher, which has to match.")
_SIZE: Final[Schema] = {"type": "integer", "minimum": 0, "maximum": LIMITS.total_bytes}
_NAMED: Final = {"path": TEXT, "size": _SIZE, "sha256": SHA256}
_FILE: Final = shape(_NAMED, {"contentType": TEXT, "storageId": TEXT, "uploadTicket": TEXT})
_WISH: Final[dict[str, Schema]] = {
    **dict.fromkeys(("displayName", "changelog", "ownerHandle"), TEXT),
    "tags": listed(TEXT),
    "acceptLicenseTerms": BOOLEAN,
    "migrateOwner": BOOLEAN,
}
_TAKEN: Final = shape(
    {
        **_OK,
        **dict.fromkeys(("skillId", "versionId", "attemptId", "slug", "version", "statusUrl"), TEXT),
        "publicationStatus": {"type": "string", "enum": ["pending", "published"]},
        "contentHash": SHA256,
    }
)
_QUEUE: Final = shape(
    {**dict.fromkeys(("queuedAhead", "running"), INTEGER), "position": or_null(INTEGER), "note": TEXT}
)
_SCANNING: Final = {
    **_OK,
    "scanId": TEXT,
    "status": {"type": "string", "enum": ["queued", "running", "succeeded", "failed"]},
    "sourceKind": {"type": "string", "enum": ["published"]},
    "update": BOOLEAN,
}
_STANDING: Final = {"queue": _QUEUE, "writtenBack": BOOLEAN, "lastError": TEXT}
_EVIDENCE: Final = shape({**dict.fromkeys(("code", "severity", "file", "message", "evidence"), TEXT), "line": INTEGER})
_REPORT: Final = shape(
    {
        "clawscan": shape({"verdict": TEXT, "summary": TEXT}),
        "staticAnalysis": shape(
            {"status": TEXT, "summary": TEXT, "reasonCodes": listed(TEXT), "findings": listed(_EVIDENCE)}
        ),
    }
)
_ENDED: Final = {
    **_STANDING,
    "completedAt": MILLISECONDS,
    "report": _REPORT,
    "artifact": shape(dict.fromkeys(("slug", "displayName", "version"), TEXT)),
}
_WHY: Final = shape({}, {"reason": TEXT, "ownerHandle": TEXT})
_PUBLISHER: Final = shape(dict.fromkeys(("_id", "handle", "displayName"), TEXT))
_TRANSFER: Final = shape(
    {
        **dict.fromkeys(("_id", "message"), TEXT),
        "skill": shape(dict.fromkeys(("_id", "slug", "displayName"), TEXT)),
        **dict.fromkeys(("requestedAt", "expiresAt"), MILLISECONDS),
    },
    {"fromUser": _PUBLISHER, "toUser": _PUBLISHER},
)
_ZIP: Final[Schema] = {"type": "string", "format": "binary"}


def _by_token(name: str, summary: str, schema: Schema, *parameters: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return an operation that is done for the owner of a token; more arguments are those of ``operation``."""
    answers = more.pop("answers", (200,))
    told = {status: {"application/json": schema} for status in answers}
    return operation(name, summary, told, parameters=parameters, **more) | {"security": [{"token": []}]}


def _withdrawing(name: str, summary: str, *parameters: dict[str, Any]) -> dict[str, Any]:
    return _by_token(name, summary, shape(_OK), *parameters, errors=(404, 409, 410, 413), body=_WHY, optional_body=True)


def _deciding(decision: str) -> dict[str, Any]:
    return {
        "post": _by_token(
            f"{decision}Transfer",
            f"Let the owner of a token {decision} the offer of a skill.",
            shape({**_OK, "skillSlug": TEXT}),
            _SLUG,
            _OWNER,
            errors=(404, 409),
        )
    }


def _listing(direction: str, summary: str) -> dict[str, Any]:
    return {"get": _by_token(f"{direction}Transfers", summary, shape({"transfers": listed(_TRANSFER)}))}


OPERATIONS: Final[dict[str, dict[str, Any]]] = {
    "/api/v1/skills": {
        "post": _by_token(
            "publish",
            "Upload a version of a skill: with all its files, or the list of those that were sent ahead.",
            _TAKEN,
            answers=(200, 202),
            errors=(409, 413, 422),
            body=shape({"slug": TEXT, "version": TEXT, "files": listed(_FILE)}, _WISH),
            other_bodies={
                "multipart/form-data": shape(
                    {"payload": {"type": "string", "description": "The JSON of the other form, without its files."}},
                    {"files": listed({"type": "string", "format": "binary"})},
                )
            },
        )
    },
    "/api/v1/skills/-/upload-url": {
        "post": _by_token(
            "uploadUrl",
            "Say where one file is to be sent ahead of its upload.",
            shape({"uploadUrl": TEXT, "uploadTicket": TEXT}),
            errors=(413,),
            body=shape(_NAMED, {"contentType": TEXT}),
        )
    },
    "/api/v1/skills/-/upload/{ticket}": {
        "post": _by_token(
            "uploadFile",
            "Take the bytes of one file, which are kept for a day.",
            shape({"storageId": SHA256}),
            in_path("ticket", "The uploadTicket of the file."),
            errors=(413,),
            other_bodies={"application/octet-stream": {"type": "string", "format": "binary"}},
        )
    },
    "/api/v1/skills/{slug}": {"delete": _withdrawing("withdraw", "Withdraw a skill.", _SLUG)},
    "/api/v1/skills/{slug}/undelete": {"post": _withdrawing("bringBack", "Bring a withdrawn skill back.", _SLUG)},
    "/api/v1/skills/{slug}/versions/{version}": {
        "delete": _withdrawing("withdrawVersion", "Withdraw one version of a skill.", _SLUG, _VERSION)
    },
    "/api/v1/skills/{slug}/versions/{version}/restore": {
        "post": _withdrawing("bringVersionBack", "Bring a withdrawn version back.", _SLUG, _VERSION)
    },
    "/api/v1/skills/{slug}/transfer": {
        "post": _by_token(
            "offerTransfer",
            "Offer a skill to another publisher, or hand it over where both are one's own.",
            shape(
                {
                    **_OK,
                    **dict.fromkeys(("transferId", "toUserHandle", "toPublisherHandle", "skillSlug"), TEXT),
                    "transferred": BOOLEAN,
                },
                {"expiresAt": MILLISECONDS},
            ),
            _SLUG,
            _OWNER,
            errors=(404, 409, 413),
            body=shape({"toUserHandle": TEXT}, {"message": TEXT}),
        )
    },
    **{f"/api/v1/skills/{{slug}}/transfer/{one}": _deciding(one) for one in ("accept", "reject", "cancel")},
    "/api/v1/transfers/incoming": _listing("incoming", "List the open offers to the publishers of a token's owner."),
    "/api/v1/transfers/outgoing": _listing("outgoing", "List the open offers of a token's owner."),
    "/api/v1/skills/-/scan": {
        "post": operation(
            "scan",
            "Ask for another scan of a published version, and say where it stands.",
            {202: {"application/json": shape(_SCANNING, _STANDING)}},
            errors=(404, 410, 413),
            body=shape(
                {
                    "source": shape(
                        {"kind": {"const": "published"}, "slug": TEXT}, {"ownerHandle": TEXT, "version": TEXT}
                    )
                },
                {"update": BOOLEAN},
            ),
        )
    },
    "/api/v1/skills/-/scan/{scan_id}": {
        "get": operation(
            "scanStatus",
            "Say where a scan stands, and what it found.",
            {
                200: {
                    "application/json": shape(
                        {**_SCANNING, "createdAt": MILLISECONDS, "updatedAt": MILLISECONDS}, _ENDED
                    )
                }
            },
            parameters=(_SCAN_ID,),
            errors=(404, 410),
            cached=True,
        )
    },
    "/api/v1/skills/-/scan/{scan_id}/download": {
        "get": operation(
            "scanReport",
            "Return the report of a scan that has ended.",
            {200: {"application/zip": _ZIP}},
            parameters=(_SCAN_ID,),
            errors=(404, 409, 410),
        )
    },
    "/api/v1/skills/-/scan/download/{slug}": {
        "get": operation(
            "storedReport",
            "Return the report of a version; its uploader also gets that of one that was not published.",
            {200: {"application/zip": _ZIP}},
            parameters=(
                _SLUG,
                query("version", TEXT, "The number of the version.", required=True),
                query("kind", {"type": "string", "enum": ["skill"]}, "What it is a version of."),
                _OWNER,
            ),
            errors=(404, 409, 410),
        )
    },
}
