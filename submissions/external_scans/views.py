"""Where scanners post their results."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from submissions.api.answers import not_allowed
from submissions.external_scans.errors import ResultRefused
from submissions.external_scans.results import Posted, receive
from submissions.external_scans.signing import SIGNATURE_HEADER, TIMESTAMP_HEADER
from vskill.accounts.access import asks_for
from vskill.kv.threads import writers
from vskill.rate_limits.kinds import Form, Kind, rated
from vskill.worker_context import require_worker_env


# csrf_exempt: what is posted is signed, and no cookie is read.
@rated(Kind.SUBMISSIONS, Form.JSON)
@asks_for(None)
@csrf_exempt
async def result(request: HttpRequest, scan_id: str) -> HttpResponse:
    """Take the result of a scan, or answer why it is refused; see ``receive``."""
    if request.method != "POST":
        return not_allowed(request, "POST")
    posted = Posted(
        scan_id=scan_id,
        body=request.body,
        timestamp=request.headers.get(TIMESTAMP_HEADER, ""),
        signature=request.headers.get(SIGNATURE_HEADER, ""),
    )
    try:
        scan = await writers.run(receive, require_worker_env(), posted)
    except ResultRefused as refused:
        return JsonResponse({"error": refused.reason, "message": str(refused)}, status=refused.status)
    return JsonResponse({"scanId": scan.id, "state": str(scan.state)})
