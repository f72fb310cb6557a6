"""The block list: repositories, owners and contents that are not published. Never bare names, which many may use."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from django.db import transaction

from marketplace.errors import MarketplaceError
from marketplace.skills.publishers import normalised_repository, publisher_of
from marketplace.skills.store import now_text, record_event
from vskill.environments import WorkerEnv
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.outcomes import Status

PREFIX: Final = "blocked:"
_LONGEST_IN_KEY: Final = 400


class BlockKind(StrEnum):
    """What an entry of the block list names: a repository's address, an owner as ``host/owner``, or a content hash."""

    REPO = "repo"
    OWNER = "owner"
    CONTENT = "content"


class InvalidBlock(MarketplaceError):
    """Something cannot stand on the block list; nothing was written."""

    code = "invalid_block"


@dataclass(frozen=True, slots=True)
class Block:
    """One entry of the block list; ``created_at`` is an ISO text in UTC."""

    kind: BlockKind
    value: str
    reason: str
    actor: str
    created_at: str

    def __str__(self) -> str:
        return f"{self.kind} {self.value} is blocked ({self.reason})"


def block_key(kind: BlockKind, value: str) -> str:
    """Return the key of an entry; raise ``InvalidBlock`` for a value that its kind does not have."""
    value = _normalised(kind, value)
    if len(value) > _LONGEST_IN_KEY:
        value = f"sha256-{hashlib.sha256(value.encode()).hexdigest()}"
    return f"{PREFIX}{kind}:{value}"


def _normalised(kind: BlockKind, value: str) -> str:
    value = value.strip()
    if kind is BlockKind.REPO:
        if not re.fullmatch(r"(https?|file)://\S+", value):
            raise InvalidBlock(f"{value!r} is not a repository's address, such as https://github.com/owner/repository.")
        return normalised_repository(value)
    if kind is BlockKind.OWNER:
        owner = value.lower().strip("/")
        if not re.fullmatch(r"[^\s/]+(/[^\s/]+)+", owner):
            raise InvalidBlock(f"{value!r} is not an owner. Write host/owner, such as github.com/owner.")
        return owner
    if not re.fullmatch(r"[0-9a-f]{64}", value.lower()):
        raise InvalidBlock(f"{value!r} is not a content hash, which has 64 hexadecimal digits.")
    return value.lower()


def _namespace(env: WorkerEnv) -> KVNamespace:
    return KVNamespace(KVEntry, env)


def block_of(key: str, value: object) -> Block:
    """Return what an entry of the block list says, whatever its value looks like."""
    found = value if isinstance(value, dict) else {}
    # The key alone says what is blocked, so that an entry whose value was damaged blocks all the same.
    kind, _, named = key.removeprefix(PREFIX).partition(":")
    texts = {name: str(found.get(name, "")) for name in ("value", "reason", "actor", "createdAt")}
    return Block(
        BlockKind(kind),
        texts["value"] or named,
        texts["reason"] or "no reason kept",
        texts["actor"],
        texts["createdAt"],
    )


def add_block(env: WorkerEnv, kind: BlockKind, value: str, *, actor: str, reason: str) -> Block:
    """Put something on the block list, or change its reason, and return the entry; what is published stays as it is."""
    key = block_key(kind, value)
    if not reason.strip():
        raise InvalidBlock("Say why: the reason is shown to whoever submits it.")
    written = {
        "kind": kind,
        "value": _normalised(kind, value),
        "reason": reason,
        "actor": actor,
        "createdAt": now_text(env),
    }
    with transaction.atomic(using=env.database):
        _namespace(env).put_sync(key, written)
        record_event(env, key, "blocked", actor=actor, reason=reason)
    return block_of(key, written)


def remove_block(env: WorkerEnv, kind: BlockKind, value: str, *, actor: str, reason: str) -> bool:
    """Take something off the block list and return whether it stood there."""
    key = block_key(kind, value)
    with transaction.atomic(using=env.database):
        removed = _namespace(env).delete_sync(key)
        if removed:
            record_event(env, key, "unblocked", actor=actor, reason=reason)
    return removed


def is_blocked(env: WorkerEnv, repo_url: str, content_hash: str = "") -> Block | None:
    """Return the entry that forbids a repository or a content, or ``None``.

    Raises ``EntryUnavailable`` where that cannot be read: nothing is published on the strength of a failed look.
    """
    keys = [block_key(BlockKind.REPO, repo_url), block_key(BlockKind.OWNER, publisher_of(repo_url).identity)]
    if content_hash:
        keys.append(block_key(BlockKind.CONTENT, content_hash))
    for key in keys:
        outcome = _namespace(env).get_sync(key)
        if outcome.status in (Status.UNREADABLE, Status.TIMED_OUT):
            outcome.require()
        if not outcome.absent:
            return block_of(key, outcome.value)
    return None


def list_blocks(env: WorkerEnv) -> Iterator[Block]:
    """Yield the whole block list in the order of its keys."""
    namespace, cursor = _namespace(env), None
    while True:
        page = namespace.list_sync(PREFIX, cursor=cursor)
        for key in page.keys:
            yield block_of(key.name, namespace.get_sync(key.name).value)
        if page.list_complete:
            return
        cursor = page.cursor
