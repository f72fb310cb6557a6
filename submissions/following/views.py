"""Where git hosts post their webhooks."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from submissions.api.answers import not_allowed
from submissions.following.signatures import Delivery, Sender
from submissions.following.webhooks import Checked, WebhookRefused, check, take
from vskill.accounts.access import asks_for
from vskill.kv.clock import isoformat
from vskill.kv.threads import readers, writers
from vskill.rate_limits.kinds import Form, Kind, rated
from vskill.worker_context import require_worker_env


# csrf_exempt: what is posted is signed, and no cookie is read. Counted as reads, because all pushes of a company come
# from one address.
@rated(Kind.READS, Form.JSON)
@asks_for(None)
@csrf_exempt
async def webhook(request: HttpRequest, sender: str) -> HttpResponse:
    """Take a webhook of a push, or answer why it is refused; see ``check``. Nothing of git is read meanwhile."""
    if request.method != "POST":
        return not_allowed(request, "POST")
    if sender not in set(Sender):
        known = ", ".join(Sender)
        return _answer(404, "unknown_sender", f"Webhooks are taken of: {known}. Nothing was written.")
    env = require_worker_env()

    def checked() -> Checked | None:
        # On the thread, so that no more bodies than threads are in memory. Not ``body``, which refuses what is larger
        # than a form; how long it may be was decided before it came here.
        return check(env, Delivery(Sender(sender), request.headers, request.read()))

    try:
        found = await readers.run(checked)
        if found is None:
            return JsonResponse({"outcome": "ignored", "message": "It is about no push. Nothing was written."})
        taken = await writers.run(take, env, found)
    except WebhookRefused as refused:
        return _answer(refused.status, refused.reason, str(refused))
    look_at = isoformat(taken.look_at) if taken.look_at else None
    queued = {"outcome": "queued", "repoUrl": taken.repo_url, "lookAt": look_at}
    return JsonResponse(queued, status=202)


def _answer(status: int, code: str, message: str) -> JsonResponse:
    return JsonResponse({"error": code, "message": message}, status=status)
