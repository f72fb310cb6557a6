"""What outside scanners said of a version, for programs."""

from __future__ import annotations

from django.http import HttpResponse

from marketplace.api.http import SAFE, ApiCall, api_view, json_response
from marketplace.api.lookup import named_skill, requested_version
from marketplace.external_scans import external_scans_sync


@api_view(*SAFE)
def external_scans(call: ApiCall) -> HttpResponse:
    """Return the newest scan of a version by each outside scanner, with its findings."""
    version = requested_version(call, named_skill(call))
    items = [
        {
            "provider": scan.provider,
            "engineVersion": scan.engine_version or None,
            "state": str(scan.state),
            "requestedAt": scan.requested_at,
            "startedAt": scan.started_at or None,
            "finishedAt": scan.finished_at or None,
            "findings": list(scan.findings),
            "error": scan.error or None,
        }
        for scan in external_scans_sync(call.env, version.content_hash)
    ]
    return json_response({"version": version.version, "contentHash": version.content_hash, "items": items})
