"""What is said of an event: the JSON that a webhook sends, and the address of the page that shows more."""

from __future__ import annotations

import json
from typing import Any, Final

from django.urls import reverse

from marketplace.addresses import skill_href
from submissions.notification_models import NotificationEvent
from submissions.outbox import Kind
from submissions.presentation import submission_path
from submissions.states import STATES, State
from vskill.environments import WorkerEnv
from vskill.hidden_characters import visible
from vskill.kv.clock import isoformat

TEST: Final = "test"
TYPES: Final = {
    Kind.PUBLISHED: "skill.published",
    Kind.HELD: "submission.held",
    Kind.REFUSED: "submission.refused",
    Kind.WITHDRAWN: "skill.withdrawn",
    Kind.VERDICT_CHANGED: "skill.verdict_changed",
}


_WORDS: Final = {
    Kind.PUBLISHED: "Published",
    Kind.HELD: "Held for review",
    Kind.REFUSED: "Refused",
    Kind.WITHDRAWN: "Withdrawn",
    Kind.VERDICT_CHANGED: "Verdict changed",
}
_LONGEST: Final = 120


def title_of(event: NotificationEvent) -> str:
    """Return an event in one line, with what its author wrote made visible."""
    data: dict[str, Any] = event.data
    what = f"{data.get('slug') or data.get('name') or 'a skill'} {data.get('version', '')}".strip()
    words = _state_words(data) if event.kind == Kind.REFUSED else _WORDS[Kind(event.kind)]
    return f"{words}: {visible(what, _LONGEST)}"


def _state_words(data: dict[str, Any]) -> str:
    state = str(data.get("state", ""))
    return STATES[State(state)].label if state in set(State) else _WORDS[Kind.REFUSED]


def reason_of(event: NotificationEvent) -> str:
    """Return why, in a sentence, as far as there is one."""
    return visible(" ".join(str(event.data.get("reason", "")).split()), 600)


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
