"""The variables about mail, and what follows from them: a server that takes mails, or none."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from vskill.variable_kinds import TEXT, Fault, Kind
from vskill.variables import Variable, grouped

_SCHEMES: Final = ("smtp", "smtps", "smtp+tls", "smtp+ssl")


def _read_server(text: str) -> str:
    try:
        parts = urlsplit(text)
        fits = parts.scheme in _SCHEMES and bool(parts.hostname) and (parts.port or 25) > 0
    except ValueError:
        fits = False
    if not fits:
        # Never the text itself, which has a password.
        raise Fault(
            "it is the address of a server for mail, such as smtp+tls://user:password@mail.example.org:587; "
            f"it begins with one of {', '.join(_SCHEMES)}"
        )
    return text


def _read_sender(text: str) -> str:
    try:
        validate_email(text)
    except ValidationError:
        raise Fault("it is an address of mail; vskill@skills.example.org") from None
    return text


MAIL_VARIABLES: Final[list[Variable]] = grouped(
    "Notifications by mail",
    Variable(
        "VSKILL_EMAIL_URL",
        Kind("address of a mail server", _read_server),
        "",
        "server that takes the mails of [notifications](notifications.md#mail): `smtp+tls://user:password@host:587`, "
        "or `smtp+ssl`, or `smtp`; without it there are none",
        shown="none",
        example="smtp+tls://vskill:password@mail.example.org:587",
        secret=True,
    ),
    Variable(
        "VSKILL_EMAIL_FROM",
        Kind("address of mail", _read_sender, TEXT.write),
        "",
        "address that mails are from; needed for them",
        shown="none",
        example="vskill@skills.example.org",
    ),
)


def mail_server(url: str) -> dict[str, Any]:
    """Return how the server at ``url`` is reached, as Django's ``get_connection`` takes it; empty without one."""
    if not url:
        return {}
    read = environ.Env.email_url_config(url.replace("smtps:", "smtp+tls:", 1))
    return {
        "backend": "django.core.mail.backends.smtp.EmailBackend",
        "host": read["EMAIL_HOST"],
        "port": read["EMAIL_PORT"] or 25,
        "username": read["EMAIL_HOST_USER"] or "",
        "password": read["EMAIL_HOST_PASSWORD"] or "",
        "use_tls": bool(read.get("EMAIL_USE_TLS")),
        "use_ssl": bool(read.get("EMAIL_USE_SSL")),
        # Seconds; shorter than the lease of what is sent.
        "timeout": 15,
    }
