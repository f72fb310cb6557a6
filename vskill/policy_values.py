"""Values of a policy that are more than a text, a number or a list, read strictly."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from django.core.exceptions import ImproperlyConfigured

_SCANNER: Final = re.compile(r"[a-z0-9-]{1,40}")
_LEAST_WEIGHT: Final = 0.01
_MOST_WEIGHT: Final = 100


def _is_weight(value: Any) -> bool:
    # A truth value is a number to Python.
    return isinstance(value, (int, float)) and not isinstance(value, bool) and _LEAST_WEIGHT <= value <= _MOST_WEIGHT


def read_weights(name: str, value: Any) -> tuple[tuple[str, float], ...]:
    """Return the pairs that ``queue_weights`` of the environment ``name`` describes.

    Raises ``ImproperlyConfigured``.
    """
    if not (isinstance(value, Mapping) and all(_is_weight(weight) for weight in value.values())):
        raise ImproperlyConfigured(
            f"VSKILL_ENVIRONMENTS: 'queue_weights' of {name!r} maps host/owner to a number from {_LEAST_WEIGHT} to "
            f"{_MOST_WEIGHT}; it was {value!r}."
        )
    return tuple((str(owner), float(weight)) for owner, weight in value.items())


def read_scanners(name: str, value: Any) -> tuple[tuple[str, str], ...]:
    """Return the pairs that ``external_scanners`` of the environment ``name`` describes.

    Raises ``ImproperlyConfigured``.
    """
    if not (isinstance(value, Mapping) and all(_is_scanner(scanner, url) for scanner, url in value.items())):
        raise ImproperlyConfigured(
            f"VSKILL_ENVIRONMENTS: 'external_scanners' of {name!r} maps the name of a scanner (small letters, digits, "
            f"hyphens) to an http or https address; it was {value!r}."
        )
    return tuple(value.items())


def _is_scanner(name: Any, url: Any) -> bool:
    return bool(_SCANNER.fullmatch(str(name))) and isinstance(url, str) and url.startswith(("http://", "https://"))
