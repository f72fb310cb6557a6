"""Pages of a query that go on behind a row: what is inserted or removed meanwhile neither repeats nor hides another."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from django.db.models import DateTimeField, Model, Q, QuerySet

from vskill.kv.cursors import decode_cursor, encode_cursor
from vskill.kv.errors import InvalidCursor

Row = TypeVar("Row", bound=Model)

_TOO_LARGE = 2**63


def binding_of(*parts: object) -> str:
    """Return the digest of what defines a list, such as its environment and filters: its cursors fit no other."""
    return hashlib.sha256(json.dumps([str(one) for one in parts]).encode()).hexdigest()[:12]


def keyset_page(
    rows: QuerySet[Row], order: Sequence[str], *, binding: str, cursor: str, limit: int
) -> tuple[list[Row], str | None]:
    """Return at most ``limit`` of ``rows`` in an order, and the cursor of the next page or ``None`` on the last.

    ``order`` names columns that hold numbers or times and are never null, with a minus where they descend; the last is
    unique. ``cursor`` is one of the list with the same ``binding``, empty for the first page. Each part of what follows
    is a query of its own, which an index in that order answers. Raises ``InvalidCursor``.
    """
    ordered = rows.order_by(*order)
    parts = _after(order, _position(rows.model, order, binding, cursor)) if cursor else [Q()]
    found: list[Row] = []
    for part in parts:
        if (left := limit + 1 - len(found)) > 0:
            found += ordered.filter(part)[:left]
    if len(found) <= limit:
        return found, None
    last = found[limit - 1]
    return found[:limit], encode_cursor(binding, *(_plain(getattr(last, one.lstrip("-"))) for one in order))


def bound_position(binding: str, cursor: str) -> list[Any]:
    """Return the values of a cursor that was made for the list with this ``binding``; raise ``InvalidCursor``.

    It was made here, but maybe by another release: what the values are has still to be checked.
    """
    try:
        bound, *position = decode_cursor(cursor)
        if bound != binding:
            raise ValueError("the cursor of another list")
    except ValueError as error:
        raise no_cursor() from error
    return position


def no_cursor() -> InvalidCursor:
    """Return the error for a text that is no cursor of a list."""
    return InvalidCursor("This cursor belongs to another list, or is none. Start again without it.")


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _position(model: type[Model], order: Sequence[str], binding: str, cursor: str) -> list[Any]:
    values = bound_position(binding, cursor)
    try:
        return [_value(model, one.lstrip("-"), value) for one, value in zip(order, values, strict=True)]
    except (ValueError, TypeError, OverflowError) as error:
        raise no_cursor() from error


def _value(model: type[Model], name: str, value: Any) -> Any:
    if name != "pk" and isinstance(model._meta.get_field(name), DateTimeField):
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            raise ValueError("a time without a zone")
        # Converted here: at either end of the calendar the database adapter's own conversion overflows.
        return moment.astimezone(UTC)
    if type(value) is not int or abs(value) >= _TOO_LARGE:
        raise ValueError("not an integer that a column can hold")
    return value


def _after(order: Sequence[str], position: Sequence[Any]) -> list[Q]:
    """Return the conditions of the rows behind a position: those of each come before those of the next."""
    parts = []
    for last in reversed(range(len(order))):
        same = {one.lstrip("-"): value for one, value in zip(order[:last], position, strict=False)}
        beyond = "lt" if order[last].startswith("-") else "gt"
        parts.append(Q(**same, **{f"{order[last].lstrip('-')}__{beyond}": position[last]}))
    return parts
