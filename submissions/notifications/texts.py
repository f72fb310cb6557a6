"""What is said of an event: the JSON that a webhook sends, and the address of the page that shows more."""

from __future__ import annotations

import json
from typing import Any, Final

from django.urls import reverse

from marketplace.addresses import skill_href
from submissions.notification_models import NotificationEvent
from submissions.outbox import Kind
from submissions.presentation import submission_path
from vskill.environments import WorkerEnv
from vskill.kv.clock import isoformat

TEST: Final = "test"
TYPES: Final = {
    Kind.PUBLISHED: "skill.published",
    Kind.HELD: "submission.held",
    Kind.REFUSED: "submission.refused",
    Kind.WITHDRAWN: "skill.withdrawn",
    Kind.VERDICT_CHANGED: "skill.verdict_changed",
}


def page_of(env: WorkerEnv, event: NotificationEvent) -> str:
    """Return the address of the page about what an event is about."""
    data: dict[str, Any] = event.data
    if event.kind in (Kind.HELD, Kind.REFUSED):
        return env.public_url + submission_path(event.submission_id)
    if data.get("slug"):
        return env.public_url + skill_href(data["slug"])
    return env.public_url + reverse("marketplace:home")


def body_of(env: WorkerEnv, event: NotificationEvent) -> bytes:
    """Return the JSON that a webhook sends of an event; it says nothing of who submitted."""
    told = {name: value for name, value in event.data.items() if value != ""}
    document = {
        "type": TYPES[Kind(event.kind)] if event.kind != TEST else TEST,
        "timestamp": isoformat(event.created_at),
        "data": {"environment": env.name, "url": page_of(env, event), **told},
    }
    return json.dumps(document).encode("ascii")
