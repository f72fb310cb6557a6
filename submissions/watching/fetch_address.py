"""Fetch what lies at an address that a skill names, under the guards of a git fetch."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from marketplace.reference_changes import Found
from submissions.sandbox.child_processes import ChildOutcome
from submissions.source.errors import HostNotAllowed, SourceError
from submissions.source.pinned_child import ask_in_child
from submissions.source.pinning import Pinned, pin
from submissions.source.urls import SourcePolicy
from vskill.hidden_characters import visible
from vskill.processes.machine_faults import MachineFault, fault_of_child

_SCRIPT: Final = Path(__file__).with_name("fetch_child.py")
_ANSWER_BYTES: Final = 64 * 1024


@dataclass(frozen=True)
class AddressLimits:
    """The budget of one address: ``seconds`` of wall-clock time, ``size`` in bytes, and ``redirects`` in a row."""

    seconds: float = 30
    size: int = 2 * 1024 * 1024
    redirects: int = 3


@dataclass(frozen=True)
class NotFetched:
    """Why nothing was fetched, in words that follow "because"."""

    reason: str


async def fetch_address(
    url: str, known: Found | None, *, policy: SourcePolicy, may_be_private: bool, limits: AddressLimits | None = None
) -> Found | NotFetched:
    """Return what lies at the https address ``url``, or why it could not be fetched.

    ``known`` is what was found there last, and is returned where the host says that it is the same. Every host, also
    one of a redirect, has to be on the public internet; with ``may_be_private`` also one that ``policy`` lets be
    private will do. All of it stays within ``limits``.
    """
    limits = limits or AddressLimits()
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + limits.seconds
    place = url
    for _hop in range(limits.redirects + 1):
        left = max(0.01, ends_at - loop.time())
        to = await _pinned(place, policy, left, may_be_private=may_be_private)
        if isinstance(to, NotFetched):
            return to
        # What an earlier answer was labelled with means something at the address itself alone.
        answer = await _ask(
            place, to, known if place == url else None, policy, limits, max(0.01, ends_at - loop.time())
        )
        if answer["end"] == "unchanged" and known is not None:
            return known
        if answer["end"] == "fetched":
            labels = (str(answer["etag"]), str(answer["modified"])) if place == url else ("", "")
            return Found(str(answer["sha256"]), int(answer["size"]), *labels)
        if answer["end"] != "redirect":
            return NotFetched(visible(str(answer.get("text") or "its host answers with nothing"), 200))
        try:
            place = urljoin(place, str(answer["text"]))
        except ValueError:
            return NotFetched("its host redirects to no address")
    return NotFetched("its host redirects too often")


async def ask_once(url: str, *, policy: SourcePolicy, limits: AddressLimits | None = None) -> tuple[str, str]:
    """Return how one request for the https address ``url`` ended, and a text; no redirect is followed.

    The end is "fetched", "redirect" with where to, "refused" by its host with why, and another word with why where
    there was no answer. The host may be one that ``policy`` lets be private. All of it stays within ``limits``.
    """
    limits = limits or AddressLimits()
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + limits.seconds
    to = await _pinned(url, policy, limits.seconds, may_be_private=True)
    if isinstance(to, NotFetched):
        return "unreachable", to.reason
    answer = await _ask(url, to, None, policy, limits, max(0.01, ends_at - loop.time()))
    return str(answer["end"]), str(answer.get("text") or "")


async def _pinned(url: str, policy: SourcePolicy, seconds: float, *, may_be_private: bool) -> Pinned | NotFetched:
    try:
        if "@" in urlsplit(url).netloc or not url.isascii() or not url.isprintable() or " " in url:
            return NotFetched("its host names no plain https address for it")
        return await pin(url, policy, seconds=seconds, may_be_private=may_be_private)
    except ValueError:
        return NotFetched("its host names no plain https address for it")
    except HostNotAllowed:
        return NotFetched("it is not on the public internet")
    except SourceError:
        return NotFetched("its host was not found by name")


async def _ask(
    url: str, to: Pinned, known: Found | None, policy: SourcePolicy, limits: AddressLimits, seconds: float
) -> dict[str, Any]:
    headers = {"Accept": "*/*"}
    if known is not None and known.etag:
        headers["If-None-Match"] = known.etag
    if known is not None and known.modified:
        headers["If-Modified-Since"] = known.modified
    result = await ask_in_child(
        _SCRIPT,
        url,
        to,
        policy=policy,
        headers=headers,
        seconds=seconds,
        cpu_seconds=int(limits.seconds) + 1,
        output_bytes=_ANSWER_BYTES,
        more={"bytes": limits.size},
    )
    if result.outcome is ChildOutcome.TIMED_OUT:
        return {"end": "late", "text": f"its host did not send it within {limits.seconds:g} seconds"}
    if result.outcome is ChildOutcome.EXITED and (fault := fault_of_child(result.stderr)) is not None:
        raise MachineFault(f"an address could not be fetched on this server: {visible(fault, 200)}")
    try:
        answer: dict[str, Any] = json.loads(result.stdout)
    except ValueError:
        return {"end": "failed", "text": "what its host sends could not be read"}
    return answer
