"""The block list: repositories, owners and contents that are not published.

It never holds bare names of skills, because unrelated skills may share a name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from django.db import transaction

from marketplace.errors import MarketplaceError
from marketplace.skills.publishers import any_case, blocked_spellings, owner_identity, publisher_of
from marketplace.skills.store import now_text, record_event
from vskill.environments import WorkerEnv
from vskill.hidden_characters import reveal_hidden
from vskill.kv.codec import is_storable
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.outcomes import Status

PREFIX: Final = "blocked:"
_MAX_VALUE_IN_KEY: Final = 400


class BlockKind(StrEnum):
    """What a block is for: the URL of a repository, an owner as ``host/owner``, or a content hash (SHA-256, hex)."""

    REPO = "repo"
    OWNER = "owner"
    CONTENT = "content"


class InvalidBlock(MarketplaceError):
    """A value cannot be blocked as it is given, or the reason is missing; nothing was written."""

    code = "invalid_block"


@dataclass(frozen=True, slots=True)
class Block:
    """One entry of the block list.

    ``value`` is normalised for its kind (see ``BlockKind``). ``reason`` is shown to submitters, ``actor`` is who
    blocked it, and ``created_at`` is an ISO text in UTC.
    """

    kind: BlockKind
    value: str
    reason: str
    actor: str
    created_at: str

    def __str__(self) -> str:
        return f"{self.kind} {self.value} is blocked ({self.reason})"


def block_key(kind: BlockKind, value: str) -> str:
    """Return the key ``blocked:{kind}:{value}``, with a hash for a long value; raise ``InvalidBlock`` for a bad one."""
    return _key(kind, _normalised(kind, value))


def _key(kind: BlockKind, value: str) -> str:
    if len(value) > _MAX_VALUE_IN_KEY:
        value = f"sha256-{hashlib.sha256(value.encode()).hexdigest()}"
    return f"{PREFIX}{kind}:{value}"


def _normalised(kind: BlockKind, value: str) -> str:
    value = value.strip()
    if kind is BlockKind.REPO:
        if not re.fullmatch(r"(https?|file|upload)://[^\s?#]+", value) or not is_storable(value):
            raise InvalidBlock(f"{value!a} is not a repository's address, such as https://github.com/owner/repository.")
        try:
            return blocked_spellings(value)[0]
        except ValueError as error:
            raise InvalidBlock(f"{value!a} is not a valid address.") from error
    if kind is BlockKind.OWNER:
        owner = any_case(owner_identity(value))
        if not re.fullmatch(r"[^\s/]+(/[^\s/]+)+", owner):
            raise InvalidBlock(f"{value!a} is not an owner. Write host/owner, such as github.com/owner.")
        return owner
    if not re.fullmatch(r"[0-9a-f]{64}", value.lower()):
        raise InvalidBlock(f"{value!a} is not a content hash, which has 64 hexadecimal digits.")
    return value.lower()


def _namespace(env: WorkerEnv) -> KVNamespace:
    return KVNamespace(KVEntry, env)


def block_of(key: str, value: object) -> Block:
    """Return the block of an entry; ``value`` is its decoded value, which may be damaged or ``None``."""
    found = value if isinstance(value, dict) else {}
    # The key alone decides what is blocked, so an entry with a damaged value still blocks.
    kind, _, named = key.removeprefix(PREFIX).partition(":")
    texts = {name: str(found.get(name, "")) for name in ("value", "reason", "actor", "createdAt")}
    return Block(
        BlockKind(kind),
        texts["value"] or named,
        texts["reason"] or "no reason kept",
        texts["actor"],
        texts["createdAt"],
    )


def add_block(env: WorkerEnv, kind: BlockKind, value: str, *, actor: str, reason: str, only_new: bool = False) -> Block:
    """Block a value, or change the reason of its block, and return the entry; published skills stay as they are.

    ``value`` is normalised for its ``kind``; ``actor`` and ``reason`` go into the entry and the history. Raises
    ``InvalidBlock`` for a value that its kind does not allow and for an empty reason, and with ``only_new``
    ``VersionConflict`` where the value is blocked already.
    """
    key = block_key(kind, value)
    if not reason.strip():
        raise InvalidBlock("Say why: the reason is shown to whoever submits it.")
    written = {
        "kind": kind,
        "value": _normalised(kind, value),
        "reason": reveal_hidden(reason),
        "actor": actor,
        "createdAt": now_text(env),
    }
    with transaction.atomic(using=env.database):
        _namespace(env).put_sync(key, written, expect_version=0 if only_new else None)
        record_event(env, key, "blocked", actor=actor, reason=reason)
    return block_of(key, written)


def remove_block(env: WorkerEnv, kind: BlockKind, value: str, *, actor: str, reason: str) -> bool:
    """Remove a value from the block list and return whether it was on it.

    ``value`` is normalised for its ``kind``; ``actor`` and ``reason`` go into the history. Raises ``InvalidBlock`` for
    a value that its kind does not allow.
    """
    # Earlier releases left `www.` and `:443` in a value, which the key still has.
    keys = dict.fromkeys((block_key(kind, value), _key(kind, value)))
    with transaction.atomic(using=env.database):
        removed = [key for key in keys if _namespace(env).delete_sync(key)]
        for key in removed:
            record_event(env, key, "unblocked", actor=actor, reason=reason)
    return bool(removed)


def is_blocked(env: WorkerEnv, repo_url: str, content_hash: str = "") -> Block | None:
    """Return the entry that blocks a repository, its owner or a content hash, or ``None``.

    Raises ``EntryUnavailable`` where an entry cannot be read: a failed read never counts as not blocked. Raises
    ``InvalidBlock`` where ``repo_url`` is not the URL of a repository.
    """
    block_key(BlockKind.REPO, repo_url)
    keys = [_key(BlockKind.REPO, one) for one in blocked_spellings(repo_url)]
    # A block of a group is one of its subgroups, also where the name of the group may be that of a service of the host.
    groups = publisher_of(repo_url).groups
    above = groups[0].rpartition("/")[0]
    keys += [_key(BlockKind.OWNER, any_case(one)) for one in (above, *groups) if "/" in one]
    if content_hash:
        keys.append(block_key(BlockKind.CONTENT, content_hash))
    for outcome in _namespace(env).get_few_sync(keys):
        if outcome.status in (Status.UNREADABLE, Status.TIMED_OUT):
            outcome.require()
        if not outcome.absent:
            return block_of(outcome.key, outcome.value)
    return None


def block_for(env: WorkerEnv, kind: BlockKind, value: str) -> Block | None:
    """Return the entry of exactly this value, ``None`` where there is none; raise ``InvalidBlock`` for a bad one."""
    outcome = _namespace(env).get_sync(block_key(kind, value))
    return None if outcome.absent else block_of(outcome.key, outcome.value)


def block_page(
    env: WorkerEnv, *, limit: int, cursor: str = "", kind: BlockKind | None = None
) -> tuple[list[Block], str | None]:
    """Return at most ``limit`` entries in the order of their keys, and the cursor of the next, ``None`` on the last.

    ``kind`` is that of all entries. Raises ``InvalidCursor`` where ``cursor`` is not one of the same list.
    """
    namespace = _namespace(env)
    page = namespace.list_sync(PREFIX if kind is None else f"{PREFIX}{kind}:", limit=limit, cursor=cursor or None)
    outcomes = namespace.get_few_sync(key.name for key in page.keys)
    # One that is taken off at this moment is gone; one that cannot be read still blocks.
    return [block_of(one.key, one.value) for one in outcomes if not one.absent], page.cursor


def list_blocks(env: WorkerEnv) -> Iterator[Block]:
    """Yield every entry of the block list in the order of the keys, read page by page."""
    namespace, cursor = _namespace(env), None
    while True:
        page = namespace.list_sync(PREFIX, cursor=cursor)
        for key in page.keys:
            yield block_of(key.name, namespace.get_sync(key.name).value)
        if page.list_complete:
            return
        cursor = page.cursor
