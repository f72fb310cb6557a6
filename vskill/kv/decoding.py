"""Make the outcome of a read from the texts that stand in the row of an entry."""

from __future__ import annotations

from vskill.kv.codec import decode
from vskill.kv.outcomes import Outcome, Status

Row = tuple[str, str, int, str, bool]
"""Key, value, version, metadata, and whether it has expired."""


def decode_row(row: Row) -> Outcome:
    """Return the outcome of a row that could be read: a value, expired, or malformed."""
    key, text, version, metadata, expired = row
    if expired:
        return Outcome(key, Status.EXPIRED)
    try:
        value = decode(text)
        described = {} if metadata == "{}" else decode(metadata)
    except ValueError as error:
        return Outcome(key, Status.MALFORMED, version=version, detail=str(error))
    if not isinstance(described, dict):
        return Outcome(key, Status.MALFORMED, version=version, detail="its metadata is not an object")
    return Outcome(key, Status.VALUE, value, version, described)
