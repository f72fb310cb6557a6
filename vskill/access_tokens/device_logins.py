"""Let a program in that cannot show a page: it shows a code, a person approves that, it fetches its token.

Every function here waits for the database. What a step changes it changes in one transaction: a token is made in that
which deletes the login, so that a code gives one token or none.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from vskill.access_tokens.models import DeviceLogin
from vskill.access_tokens.scopes import as_text, scopes_of
from vskill.access_tokens.token_form import without_tokens
from vskill.access_tokens.tokens import DEFAULT_DAYS, LONGEST_NAME, TokenNotMade, make_token
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.hidden_characters import visible

LIFETIME: Final = timedelta(minutes=15)
# Seconds that a program waits between two questions.
INTERVAL: Final = 3
# Of one environment, waiting at once.
MOST_WAITING: Final = 10_000
# No vowels, so that no code is a word, and nothing that is read as something else: 20 ** 8 codes.
_LETTERS: Final = "BCDFGHJKLMNPQRSTVWXZ"
_LENGTH: Final = 8
# How long it is remembered that a code has expired; the answer to one that was never given is the same.
_KEPT: Final = timedelta(hours=1)


class DeviceRefused(VskillError):
    """A device that gets no token, at least not now; ``error`` is the word of RFC 8628 for it."""

    code = "device_refused"

    def __init__(self, error: str, text: str) -> None:
        """Keep the word beside the sentence for people."""
        super().__init__(text)
        self.error = error


@dataclass(frozen=True)
class Begun:
    """What a program is told when it asks: its secret, and the code that it shows."""

    device_code: str
    user_code: str


def begin(env: WorkerEnv, *, label: str, scopes: str) -> Begun:
    """Let a program wait for a person; ``scopes`` are names with blanks between, as the program asks for them.

    Raises ``UnknownScope``, and ``DeviceRefused`` where too many wait.
    """
    wanted = as_text(scopes_of(scopes.split()))
    now = timezone.now()
    _logins(env).filter(expires_at__lt=now - _KEPT).delete()
    if _logins(env).filter(expires_at__gt=now).count() >= MOST_WAITING:
        raise DeviceRefused("slow_down", "Too many devices wait to be let in. Try again in a few minutes.")
    device_code, user_code = secrets.token_urlsafe(32), "".join(secrets.choice(_LETTERS) for _number in range(_LENGTH))
    DeviceLogin.objects.create(
        namespace=env.name,
        digest=_digest(device_code),
        user_code=user_code,
        label=without_tokens(visible(label.replace("\0", "").strip() or "a device", LONGEST_NAME)),
        scopes=wanted,
        expires_at=now + LIFETIME,
    )
    return Begun(device_code, f"{user_code[:4]}-{user_code[4:]}")


def waiting(env: WorkerEnv, typed: str) -> DeviceLogin | None:
    """Return the login that waits under the code that a person ``typed``, however it is written; else ``None``."""
    code = "".join(one for one in typed[:100].upper() if one in _LETTERS)
    return _logins(env).filter(user_code=code, user=None, denied=False, expires_at__gt=timezone.now()).first()


def decide(env: WorkerEnv, typed: str, user: Any, *, approve: bool) -> bool:
    """Let the program whose code was ``typed`` in as ``user``, or refuse it where ``approve`` is false.

    Return ``False``, with nothing changed, where it waits no longer.
    """
    found = waiting(env, typed)
    if found is None:
        return False
    change = {"user": user} if approve else {"denied": True}
    # With the conditions again: of two who decide at once, the first counts.
    still = _logins(env).filter(pk=found.pk, user=None, denied=False, expires_at__gt=timezone.now())
    return bool(still.update(**change))


def collect(env: WorkerEnv, device_code: str) -> tuple[str, str]:
    """Return the token of a program that was let in, and its scopes; this works once.

    Raises ``DeviceRefused`` with ``authorization_pending``, ``slow_down``, ``access_denied``, ``expired_token`` (also
    for a code that was used, or never given) or ``token_not_made``.
    """
    now = timezone.now()
    found = _logins(env).select_related("user").filter(digest=_digest(device_code)).first()
    if found is None or found.expires_at <= now:
        raise _expired()
    if found.denied:
        raise DeviceRefused("access_denied", "The login was refused on the page. No token was made.")
    if found.user is None:
        raise _not_yet(env, found, now)
    with transaction.atomic(using=DeviceLogin.objects.db):
        # Of two who ask at once, one deletes it.
        if not _logins(env).filter(pk=found.pk).delete()[0]:
            raise _expired()
        try:
            made, token = make_token(
                env, found.user, name=found.label, scopes=scopes_of(found.scopes.split()), days=DEFAULT_DAYS
            )
        except TokenNotMade as error:
            raise DeviceRefused(error.code, str(error)) from error
    return token, made.scopes


def _not_yet(env: WorkerEnv, found: DeviceLogin, now: datetime) -> DeviceRefused:
    too_fast = found.polled_at is not None and now - found.polled_at < timedelta(seconds=INTERVAL - 1)
    _logins(env).filter(pk=found.pk).update(polled_at=now)
    if too_fast:
        return DeviceRefused("slow_down", f"Ask every {INTERVAL} seconds.")
    return DeviceRefused("authorization_pending", "Nobody has entered the code yet.")


def _expired() -> DeviceRefused:
    return DeviceRefused("expired_token", "The code is not valid any more. Log in again for another one.")


def _logins(env: WorkerEnv) -> QuerySet[DeviceLogin]:
    return DeviceLogin.objects.filter(namespace=env.name)


def _digest(device_code: str) -> str:
    return hashlib.sha256(device_code.encode(errors="surrogatepass")).hexdigest()
