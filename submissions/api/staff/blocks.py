"""The calls of operators about the block list: read it, block a value, take one off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from marketplace.skills.blocklist import Block, BlockKind, add_block, block_for, block_page, remove_block
from marketplace.skills.publishers import full_address
from submissions.api.answers import limit_of
from submissions.api.staff.calls import DEFAULT_PAGE, MOST_ON_PAGE, OF_LISTS, StaffCall, staff_view
from vskill.access_tokens.scopes import Scope
from vskill.kv.errors import VersionConflict

_KINDS: Final[Mapping[str, BlockKind]] = {str(kind): kind for kind in BlockKind}
_CHANGE: Final = ("marketplace.view_blockentry", "marketplace.change_blockentry")


def _list(call: StaffCall) -> Mapping[str, Any]:
    call.needs(*_CHANGE)
    call.queries_only(*OF_LISTS)
    limit = limit_of(call.request, DEFAULT_PAGE, MOST_ON_PAGE)
    found, following = block_page(call.env, limit=limit, cursor=call.request.GET.get("cursor", ""))
    return {"items": [_shown(one) for one in found], "nextCursor": following}


def _shown(block: Block) -> dict[str, Any]:
    return {
        "kind": str(block.kind),
        "value": block.value,
        "reason": block.reason,
        "actor": block.actor,
        "createdAt": block.created_at,
    }


def _add(call: StaffCall) -> Mapping[str, Any]:
    call.needs("marketplace.add_blockentry")
    call.takes_only("kind", "value", "reason")
    kind, value = _named(call)
    try:
        made = add_block(call.env, kind, value, actor=call.actor, reason=call.reason(), only_new=True)
    except VersionConflict:
        present = block_for(call.env, kind, value)
        if present is None:
            # It was taken off between the two: whoever asks again blocks it.
            raise
        return {**_shown(present), "changed": False}
    return {**_shown(made), "changed": True}


def _remove(call: StaffCall) -> Mapping[str, Any]:
    call.needs("marketplace.delete_blockentry")
    call.takes_only("kind", "value", "reason")
    kind, value = _named(call)
    changed = remove_block(call.env, kind, value, actor=call.actor, reason=call.reason())
    return {"kind": str(kind), "value": value, "changed": changed}


def _named(call: StaffCall) -> tuple[BlockKind, str]:
    kind, value = call.one_of("kind", _KINDS), call.text("value")
    return kind, full_address(value) if kind is BlockKind.REPO else value


blocks = staff_view(Scope.OPERATE, GET=_list, POST=_add)
unblock = staff_view(Scope.OPERATE, POST=_remove)
