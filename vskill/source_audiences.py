"""To whom skills of a source are shown, as plain values of a policy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from django.core.exceptions import ImproperlyConfigured

_PLACE: Final = re.compile(r"(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?(?:/[^\s/@?#]+)*")
_AUDIENCE: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def read_audiences(name: str, value: Any) -> tuple[tuple[str, str], ...]:
    """Return the pairs of place and audience that ``audiences`` of the environment ``name`` describes.

    Raises ``ImproperlyConfigured``.
    """
    if not isinstance(value, Mapping):
        raise _fault(name, value)
    found = []
    for place, audience in value.items():
        host, slash, path = str(place).partition("/")
        canonical = f"{host.lower().removesuffix(':443')}{slash}{path}".rstrip("/")
        if not _PLACE.fullmatch(canonical) or not isinstance(audience, str) or not is_audience_word(audience):
            raise _fault(name, {place: audience})
        found.append((canonical, audience))
    return tuple(found)


def read_credential_audience(name: str, value: Any) -> str:
    """Return the audience that ``credential_audience`` of ``name`` names; raise ``ImproperlyConfigured``."""
    if not isinstance(value, str) or not is_audience_word(value):
        raise ImproperlyConfigured(
            f"VSKILL_ENVIRONMENTS: 'credential_audience' of {name!r} is public, members or the name of a team; it was "
            f"{value!r}."
        )
    return value


def is_audience_word(word: str) -> bool:
    """Return whether a word can name an audience: public, members or a team."""
    return len(word) <= 40 and _AUDIENCE.fullmatch(word) is not None


def _fault(name: str, value: Any) -> ImproperlyConfigured:
    return ImproperlyConfigured(
        f"VSKILL_ENVIRONMENTS: 'audiences' of {name!r} maps a host, host/owner or host/owner/repository (without "
        f"https://) to public, members or the name of a team; it was {value!r}."
    )
