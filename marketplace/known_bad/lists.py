"""Lists of known bad content in files, CSV or JSON, by which registries tell one another."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from marketplace.known_bad.entries import BadContent
from marketplace.likeness.signature import VERSION, Signature, unpack
from marketplace.models import KnownBad

FORMAT: Final = 1
_HASH: Final = re.compile(r"[0-9a-f]{64}")
_COLUMNS: Final = ("name", "reason", "contentHash", "normalDigest", "sketch", "source", "date")


@dataclass(frozen=True)
class Line:
    """One entry of a list: its number from 1, the content that it names, or what is wrong with it."""

    number: int
    content: BadContent | None = None
    problem: str = ""


def read_list(text: str) -> list[Line]:
    """Return the entries of a list; raise ``ValueError`` for a text that is no list.

    A CSV file has a row of column names; a JSON document has ``format`` 1 and ``entries``. Both have the columns of
    ``as_value``, of which only ``name``, ``reason`` and one of both hashes are needed.
    """
    if text.lstrip()[:1] != "{":
        rows: Iterable[Any] = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")), restkey="more")
    else:
        document = json.loads(text)
        rows = document.get("entries")
        if document.get("format") != FORMAT or not isinstance(rows, list):
            raise ValueError(f"A list in JSON has the format {FORMAT} and entries.")
    return [_line(number, row) for number, row in enumerate(rows, 1)]


def _line(number: int, row: Any) -> Line:
    if not isinstance(row, Mapping):
        return Line(number, problem="it is no object")
    texts = {name: row.get(name) or "" for name in _COLUMNS}
    if not all(isinstance(text, str) for text in texts.values()):
        return Line(number, problem="a field of it is no text")
    try:
        return Line(number, _content({name: text.strip() for name, text in texts.items()}))
    except ValueError as error:
        return Line(number, problem=str(error))


def _content(texts: Mapping[str, str]) -> BadContent:
    hashes = {name: texts[name].lower() for name in ("contentHash", "normalDigest")}
    for name, value in hashes.items():
        if value and not _HASH.fullmatch(value):
            raise ValueError(f"its {name} has not 64 hexadecimal digits")
    if not any(hashes.values()):
        raise ValueError("it has neither a contentHash nor a normalDigest")
    if not texts["name"] or not texts["reason"]:
        raise ValueError("it has no name or no reason")
    try:
        sketch = unpack(texts["sketch"])
        found_on = date.fromisoformat(texts["date"]) if texts["date"] else None
    except ValueError as error:
        raise ValueError("its sketch or its date cannot be read") from error
    return BadContent(
        name=texts["name"],
        reason=texts["reason"],
        content_hash=hashes["contentHash"],
        signature=Signature(hashes["normalDigest"], sketch),
        source=texts["source"],
        found_on=found_on,
    )


def as_value(entry: KnownBad) -> dict[str, Any]:
    """Return an entry as a list holds it, with its number in this registry and who entered it."""
    return {
        "id": entry.pk,
        "name": entry.name,
        "reason": entry.reason,
        "contentHash": entry.content_hash or "",
        "normalDigest": entry.normal_digest or "",
        "sketch": entry.sketch,
        "source": entry.source,
        "date": entry.found_on.isoformat() if entry.found_on else "",
        "actor": entry.actor,
        "enteredAt": entry.created_at.isoformat(),
    }


def as_document(entries: Iterable[KnownBad]) -> dict[str, Any]:
    """Return entries as a document that ``read_list`` reads."""
    return {"format": FORMAT, "signatureVersion": VERSION, "entries": [as_value(entry) for entry in entries]}
