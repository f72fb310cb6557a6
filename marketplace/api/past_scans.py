"""What each scan of a version came to, for programs."""

from __future__ import annotations

from django.http import HttpResponse

from marketplace.api.http import SAFE, ApiCall, api_view, json_response
from marketplace.api.lookup import named_skill, requested_version
from marketplace.skills.scan_history import scan_history
from vskill.kv.clock import isoformat


@api_view(*SAFE)
def past_scans(call: ApiCall) -> HttpResponse:
    """Return the scans of a version, the newest first: the last is the one that it was published by.

    ``outcome`` is a verdict, or for a ``scanner`` outside the registry the state in which its scan ended. ``times``
    scans in a row came to the same, from ``firstAt`` to ``lastAt``.
    """
    version = requested_version(call, named_skill(call))
    items = [
        {
            "scanner": scan.scanner or None,
            "outcome": scan.outcome or None,
            "engines": [dict(one) for one in scan.engines],
            "findings": dict(scan.findings),
            "firstAt": isoformat(scan.first_at),
            "lastAt": isoformat(scan.last_at),
            "times": scan.times,
            "published": scan.published,
        }
        for scan in scan_history(call.env, version)
    ]
    return json_response({"version": version.version, "contentHash": version.content_hash, "items": items})
