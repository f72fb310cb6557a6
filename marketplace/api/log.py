"""The log of verdicts and withdrawals: its signed head, its entries, and proofs about both (RFC 6962)."""

from __future__ import annotations

from base64 import b64encode
from typing import Final

from django.http import HttpResponse, HttpResponseBase

from marketplace.api.http import (
    SAFE,
    ApiCall,
    ApiError,
    api_view,
    json_response,
    parameter,
    tagged_response,
    takes_only,
)
from marketplace.api.provenance import NOT_SIGNING
from marketplace.models import LogLeaf, TreeHead
from marketplace.provenance.log import latest_head, origin
from marketplace.provenance.proofs import consistency_proof, inclusion_proof, log_size
from marketplace.provenance.reading import signs
from vskill.kv.clock import isoformat

MOST_ENTRIES: Final = 500
# Digits of an index or a size.
LONGEST_NUMBER: Final = 15
_NO_HEAD: Final = "The log has no signed head yet; that takes a minute after the first publication."


@api_view(*SAFE)
def head(call: ApiCall) -> HttpResponse:
    """Return the newest signed head of the log."""
    found = _head(call)
    return json_response(
        {
            "origin": origin(call.env),
            "size": found.size,
            "rootHash": b64encode(bytes.fromhex(found.root_hash)).decode(),
            "checkpoint": found.note,
            "keyId": found.key.key_id,
            "signedAt": isoformat(found.signed_at),
        }
    )


@api_view(*SAFE)
def checkpoint(call: ApiCall) -> HttpResponseBase:
    """Return that head as a signed note."""
    return tagged_response(call, _head(call).note, "text/plain; charset=utf-8")


@api_view(*SAFE)
def entries(call: ApiCall) -> HttpResponse:
    """Return the entries from ``start`` to before ``end``, at most ``MOST_ENTRIES``.

    The leaf of an entry is the SHA-256 of a zero byte and the text of ``entry``.
    """
    takes_only(call, "start", "end")
    size = log_size(call.env)
    start = _number(call, "start", 0, size)
    end = min(_number(call, "end", min(size, start + MOST_ENTRIES), size), start + MOST_ENTRIES)
    rows = LogLeaf.objects.using(call.env.database).filter(namespace=call.env.name, number__gte=start, number__lt=end)
    shown = [{"index": row.number, "entry": row.body} for row in rows.order_by("number")]
    return json_response({"size": size, "entries": shown})


@api_view(*SAFE)
def inclusion(call: ApiCall) -> HttpResponse:
    """Return the proof that entry ``index`` is in the tree of the first ``size`` entries, by default the signed one."""
    takes_only(call, "index", "size")
    size = _size(call, "size")
    index = _number(call, "index", None, size - 1)
    hashes = inclusion_proof(call.env, index, size)
    return json_response({"index": index, "size": size, "hashes": [b64encode(one).decode() for one in hashes]})


@api_view(*SAFE)
def consistency(call: ApiCall) -> HttpResponse:
    """Return the proof that the tree of ``second`` entries (default: the signed one) begins with that of ``first``."""
    takes_only(call, "first", "second")
    second = _size(call, "second")
    first = _number(call, "first", None, second)
    if first < 1:
        raise ApiError(400, "The parameter first is a number from 1: every tree begins with the empty one.")
    hashes = consistency_proof(call.env, first, second)
    return json_response({"first": first, "second": second, "hashes": [b64encode(one).decode() for one in hashes]})


def _head(call: ApiCall) -> TreeHead:
    found = latest_head(call.env)
    if found is None:
        raise ApiError(404, _NO_HEAD if signs(call.env) else NOT_SIGNING)
    return found


def _size(call: ApiCall, name: str) -> int:
    """Return the size of a tree that a parameter names; the default is that of the newest signed head."""
    given = _number(call, name, 0, log_size(call.env))
    return given or _head(call).size


def _number(call: ApiCall, name: str, default: int | None, highest: int) -> int:
    given = parameter(call, name, longest=40)
    if not given:
        if default is not None:
            return default
        raise ApiError(400, f"The parameter {name} is missing.")
    if not given.isascii() or not given.isdigit() or len(given) > LONGEST_NUMBER or int(given) > highest:
        raise ApiError(400, f"The parameter {name} is a number from 0 to {max(highest, 0)}.")
    return int(given)
