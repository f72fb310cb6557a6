"""Take the webhook of a git host: checked whole, then one look is asked for, or nothing is written.

The two are apart, because only the second is work for a thread that writes: to check a push of megabytes takes a while.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec
from django.db import transaction

from marketplace.following import Followed, read_followed_sync
from submissions.following.pace import LEAST_BETWEEN
from submissions.following.signatures import Delivery, Sender, is_signed
from submissions.following.store import CannotFollow, NotFollowed, ask_for_look
from submissions.source.errors import InvalidRepositoryURL
from submissions.source.fetching import repository_url
from submissions.source.logins import covers
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.kv.clock import database_now
from vskill.kv.errors import VersionConflict
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.webhook_secrets import WEBHOOKS

# A replay after that asks for a look, which happens anyway.
SEEN_FOR: Final = timedelta(days=3)
SEEN_PREFIX: Final = "webhook-seen:"
_LOOKED_AT: Final = frozenset({"push", "create", "delete", "Push Hook", "Tag Push Hook"})
# System hooks of GitLab say in the body what they are.
_SYSTEM_HOOK: Final = "System Hook"
_KINDS_OF_SYSTEM: Final = frozenset({"push", "tag_push"})


class WebhookRefused(VskillError):
    """A webhook is not taken; nothing was written. ``status`` is that of the answer, and ``reason`` its code."""

    code = "webhook_refused"

    def __init__(self, status: int, reason: str, message: str) -> None:
        """Keep the HTTP ``status`` and the ``reason`` beside the ``message``."""
        super().__init__(message)
        self.status = status
        self.reason = reason


@dataclass(frozen=True)
class Checked:
    """A webhook that is right: the repository that it is about, and by what it is known again.

    It has nothing of the body, which may have megabytes.
    """

    repo_url: str
    seen: str


@dataclass(frozen=True)
class Taken:
    """What became of a webhook: the repository that is looked at because of it, and when."""

    repo_url: str
    look_at: datetime | None


def check(env: WorkerEnv, delivery: Delivery) -> Checked | None:
    """Return which repository a webhook is about, ``None`` where it is about no push.

    The signature is checked before anything of the body is read, then whether the secret is the one of the repository,
    and whether that is followed. Raises ``WebhookRefused``.
    """
    now = database_now(env.database)
    signed_with = _secrets_that_sign(env, delivery, now)
    if not _may_be_about_refs(delivery):
        return None
    body = _body_of(delivery)
    if not _is_about_refs(delivery, body):
        return None
    url = _repository_of(env, delivery, body)
    if _secret_for(env, url) not in signed_with:
        raise _unsigned()
    if read_followed_sync(env, url) is None:
        raise _not_followed(url)
    return Checked(url, hashlib.sha256(delivery.sender.encode() + b"\0" + delivery.once).hexdigest())


def take(env: WorkerEnv, checked: Checked) -> Taken:
    """Ask for a look at a repository because of a webhook that ``check`` found right; raise ``WebhookRefused``.

    It is refused where this very webhook was taken before.
    """
    url = checked.repo_url
    try:
        with transaction.atomic(using=env.database):
            KVNamespace(KVEntry, env).put_sync(f"{SEEN_PREFIX}{checked.seen}", url, ttl=SEEN_FOR, expect_version=0)
            asked = ask_for_look(env, url, _at_the_earliest)
    except NotFollowed:
        raise _not_followed(url) from None
    except CannotFollow as error:
        raise WebhookRefused(503, "busy", str(error)) from None
    except VersionConflict:
        raise WebhookRefused(409, "replayed", "This very webhook was taken before. Nothing was changed.") from None
    return Taken(url, asked.look_at)


def _at_the_earliest(one: Followed, now: datetime) -> datetime:
    return max(now, one.looked_at + LEAST_BETWEEN) if one.looked_at is not None else now


def _secrets_that_sign(env: WorkerEnv, delivery: Delivery, now: datetime) -> set[str]:
    names = {WEBHOOKS, *(one.secret for one in env.policy.webhook_secrets)} & env.secrets.keys()
    if not names:
        raise WebhookRefused(
            404, "no_webhooks", "This registry takes no webhooks: its operator has configured no secret for them."
        )
    # All of them, so that the time does not tell which one it is.
    found = {name: is_signed(delivery, env.secret(name), now.timestamp()) for name in sorted(names)}
    if not any(found.values()):
        raise _unsigned()
    return {name for name, signed in found.items() if signed}


def _not_followed(url: str) -> WebhookRefused:
    return WebhookRefused(404, "not_followed", f"Nobody follows {url} here. Nothing was written.")


def _unsigned() -> WebhookRefused:
    return WebhookRefused(
        401,
        "wrong_signature",
        "This webhook is not signed with the secret that this registry has for its repository. Nothing was written. "
        "Compare the secret of the webhook with the one that the operator configured.",
    )


def _secret_for(env: WorkerEnv, url: str) -> str:
    """Return the name of the secret for a repository: that of the longest place that fits, or of the environment."""
    fitting = [one for one in env.policy.webhook_secrets if covers(one.place, url)]
    best = max(fitting, key=lambda one: one.place.count("/"), default=None)
    return WEBHOOKS if best is None else best.secret


class _Body(msgspec.Struct):
    """What is read of a webhook; the list of commits, which can have megabytes, is passed by."""

    repository: Any = None
    project: Any = None
    object_kind: Any = None
    event_name: Any = None


_READ: Final = msgspec.json.Decoder(_Body)


def _body_of(delivery: Delivery) -> _Body:
    try:
        text = delivery.body.decode()
        if delivery.header("Content-Type").startswith("application/x-www-form-urlencoded"):
            text = parse_qs(text, max_num_fields=10).get("payload", [""])[0]
        try:
            return _READ.decode(text)
        except msgspec.DecodeError:
            # It refuses half of a character, which a message that was cut can have.
            found = json.loads(text)
            return _Body(**{name: found.get(name) for name in _Body.__struct_fields__})
    except (ValueError, RecursionError, AttributeError):
        raise WebhookRefused(400, "malformed", "The body is not a JSON object. Nothing was written.") from None


def _may_be_about_refs(delivery: Delivery) -> bool:
    return delivery.event in _LOOKED_AT or (delivery.sender is Sender.GITLAB and delivery.event == _SYSTEM_HOOK)


def _is_about_refs(delivery: Delivery, body: _Body) -> bool:
    if delivery.sender is Sender.GITLAB and delivery.event == _SYSTEM_HOOK:
        kind = body.event_name if body.object_kind is None else body.object_kind
        return isinstance(kind, str) and kind in _KINDS_OF_SYSTEM
    return True


def _repository_of(env: WorkerEnv, delivery: Delivery, body: _Body) -> str:
    gitlab = delivery.sender is Sender.GITLAB
    part = body.project if gitlab else body.repository
    names = ("git_http_url", "http_url", "web_url") if gitlab else ("clone_url", "html_url")
    for name in names:
        address = part.get(name) if isinstance(part, dict) else None
        if isinstance(address, str) and address:
            # A host behind a proxy of its own may not know that it is reached over https.
            secure = f"https://{address[7:]}" if address.startswith("http://") else address
            try:
                return repository_url(env, secure).url
            except InvalidRepositoryURL as error:
                raise WebhookRefused(400, "malformed", f"{error} Nothing was written.") from None
    raise WebhookRefused(400, "malformed", "The body names no repository. Nothing was written.")
