"""What published versions refer to: which addresses are watched, and what was found there since a version was checked.

An address is one entry, however many versions use it. Each use keeps what was found first after its version was
checked, so a change counts for the versions that were checked before it, and not for later ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from marketplace.models import ReferenceEntry, SkillVersion
from marketplace.models.references import ADDRESS_PREFIX, LONGEST_URL, USE_PREFIX
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now, isoformat, parse_isoformat
from vskill.kv.codec import encode
from vskill.kv.namespace import KVNamespace

MOST_WATCHED: Final = 100
_WATCHED_KINDS: Final = frozenset({"address", "installer"})
# What only the agent or the code of a skill can put in.
_UNFINISHED: Final = frozenset("{}<>*$|^`\\ ")
_MOST_NAMED: Final = 3


def is_contract(contract: Any) -> bool:
    """Return whether a stored value is a contract, which an earlier release did not store."""
    return isinstance(contract, dict) and contract.keys() >= {"declares", "does", "chains", "references", "left"}


def reference_namespace(env: WorkerEnv) -> KVNamespace:
    """Return the KV namespace of an environment's references."""
    return KVNamespace(ReferenceEntry, env)


def digest_of(url: str) -> str:
    """Return what the keys of an address are made of."""
    return hashlib.sha256(url.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def address_key(digest: str) -> str:
    """Return the key of an address."""
    return f"{ADDRESS_PREFIX}{digest}"


def use_prefix(digest: str) -> str:
    """Return the beginning of the keys of all uses of an address."""
    return f"{USE_PREFIX}{digest}:"


def watched_addresses(contract: Any) -> list[tuple[str, str]]:
    """Return the addresses in a stored contract that are fetched again, each with what is done with it.

    Those are complete ones of https that no hash pins, at most ``MOST_WATCHED``.
    """
    references = contract.get("references") if isinstance(contract, Mapping) else None
    watched = dict(_watched(references if isinstance(references, list) else ()))
    return list(watched.items())[:MOST_WATCHED]


def _watched(references: Iterable[Any]) -> Iterator[tuple[str, str]]:
    for one in references:
        if not isinstance(one, Mapping) or one.get("kind") not in _WATCHED_KINDS or one.get("pinned") == "hash":
            continue
        url = str(one.get("name", ""))
        if len(url) > LONGEST_URL or not url.isascii() or not url.isprintable() or _UNFINISHED & set(url):
            continue
        try:
            parts = urlsplit(url)
            complete = parts.scheme == "https" and bool(parts.hostname) and "@" not in parts.netloc
            # Raises ValueError where it is no number.
            complete = complete and (parts.port is None or parts.port > 0)
        except ValueError:
            continue
        if complete:
            yield url.partition("#")[0], str(one.get("role", ""))


def watch_references(env: WorkerEnv, version: SkillVersion) -> None:
    """Have the addresses that a published ``version`` refers to fetched again, in the caller's transaction."""
    now = isoformat(database_now(env.database))
    addresses, uses = {}, {}
    for url, role in watched_addresses(version.contract):
        digest = digest_of(url)
        addresses[address_key(digest)] = {"url": url, "host": urlsplit(url).hostname, "dueAt": now}
        uses[f"{use_prefix(digest)}{version.pk}"] = {"url": url, "versionNumber": version.pk, "role": role}
    for entries in (addresses, uses):
        # In the order of their keys, so that two publications with the same addresses cannot deadlock.
        rows = [ReferenceEntry(namespace=env.name, key=key, value=encode(entries[key])) for key in sorted(entries)]
        ReferenceEntry.objects.using(env.database).bulk_create(rows, ignore_conflicts=True)


def renew_references(env: WorkerEnv, version: SkillVersion) -> None:
    """Have what the renewed contract of a ``version`` refers to fetched again, in the caller's transaction.

    What was found at an address before is kept. An address that the contract does not name any more is not watched for
    this version, unless it has changed already, which is what its flag is about.
    """
    rows = ReferenceEntry.objects.using(env.database).filter(namespace=env.name, version_number=version.pk)
    named = {url for url, _role in watched_addresses(version.contract)}
    namespace = reference_namespace(env)
    for key, url in rows.filter(changed_at__isnull=True).order_by("key").values_list("key", "url"):
        if url not in named:
            namespace.delete_sync(key)
    watch_references(env, version)


def reference_states(env: WorkerEnv, version: SkillVersion) -> dict[str, dict[str, Any]]:
    """Return by address what was found at the references of a version since it was checked.

    Each has ``checked_at``, ``failures`` in a row with their ``error``, and ``changed_at``, None where nothing has
    changed. An address that is not watched is absent.
    """
    if not watched_addresses(version.contract):
        return {}
    rows = ReferenceEntry.objects.using(env.database).filter(namespace=env.name)
    uses = {row.url: row for row in rows.filter(version_number=version.pk)}
    addresses = {row.url: row for row in rows.filter(key__in=[address_key(digest_of(url)) for url in uses])}
    namespace = reference_namespace(env)
    states: dict[str, dict[str, Any]] = {}
    for url, use in uses.items():
        row = addresses.get(url)
        outcome = namespace.get_sync(row.key) if row is not None else None
        value = outcome.value if outcome is not None and outcome.found and isinstance(outcome.value, dict) else {}
        states[url] = {
            "checked_at": parse_isoformat(value.get("checkedAt")),
            "failures": row.failures if row is not None else 0,
            "error": str(value.get("error", "")),
            "changed_at": use.changed_at,
        }
    return states


def changed_references(env: WorkerEnv, versions: Iterable[int]) -> dict[int, list[ReferenceEntry]]:
    """Return the uses whose address has changed since the check, by the row number of their version, oldest first."""
    rows = ReferenceEntry.objects.using(env.database).filter(
        namespace=env.name, version_number__in=list(versions), changed_at__isnull=False
    )
    found: dict[int, list[ReferenceEntry]] = {}
    for row in rows.order_by("changed_at", "key"):
        found.setdefault(int(row.version_number or 0), []).append(row)
    return found


def change_sentence(changed: Iterable[ReferenceEntry]) -> str:
    """Return in a sentence what a version refers to and has changed since its check; empty where nothing has."""
    rows = list(changed)
    if not rows:
        return ""
    named = ", ".join(f"{row.url} ({row.changed_at:%Y-%m-%d})" for row in rows[:_MOST_NAMED])
    more = f" and {len(rows) - _MOST_NAMED} more" if len(rows) > _MOST_NAMED else ""
    return f"What it refers to has changed since the check: {named}{more}."
