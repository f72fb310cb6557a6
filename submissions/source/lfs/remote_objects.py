"""Fetch LFS objects over https, under the guards of a git fetch.

Two kinds of children do the talking: one asks the batch API where the objects are, the next fetch them from there. Each
host that they are sent to, also by a redirect, is checked here first, and they connect only to the checked addresses.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from submissions.sandbox.child_processes import ChildLimits, ChildOutcome, PreparedScript, run_child
from submissions.source.errors import HostNotAllowed, SourceError
from submissions.source.lfs.pointers import Pointer
from submissions.source.pinning import Pinned, may_lead_to_private, pin
from submissions.source.urls import SourcePolicy
from vskill.hidden_characters import visible
from vskill.processes.machine_faults import MachineFault, fault_of_child

_SCRIPT: Final = Path(__file__).with_name("transfer_child.py")
_URL: Final = re.compile(r"https://[!-~]{1,8000}")
# What stores of objects ask for. Anything else, a cookie or another Host above all, is nobody's to choose.
_HEADER: Final = re.compile(r"accept|authorization|x-(amz|goog|ms)-[a-z0-9-]{1,80}", re.IGNORECASE)
_HEADER_VALUE: Final = re.compile(r"[ -~]{1,4096}")
_MOST_HEADERS: Final = 20
_LINE_BYTES: Final = 64 * 1024
# A character may take six in JSON; with room for what is around them.
_LONGEST_IN_JSON: Final = 8


@dataclass(frozen=True)
class LfsLimits:
    """The budget of the objects of one package.

    ``seconds`` is wall-clock time for all of them. ``objects`` is the most that are asked for, ``answer_bytes`` the
    longest answer to that question, ``redirects`` how many are followed for each. ``memory_bytes`` bounds the address
    space of each child.
    """

    seconds: float = 60
    objects: int = 100
    answer_bytes: int = 1024 * 1024
    redirects: int = 3
    memory_bytes: int = 1024 * 1024 * 1024


@dataclass(frozen=True)
class Missing:
    """Why an object was not fetched, in words that follow "because"; ``transient`` says that it may be, later."""

    reason: str
    transient: bool = False


@dataclass(frozen=True)
class _Place:
    """Where an object is, and what to send along; only ever to that host."""

    pointer: Pointer
    url: str
    headers: Mapping[str, str]


def batch_address(url: str) -> str:
    """Return the address of the LFS API of the repository at ``url``, as git-lfs finds it without a configuration."""
    return f"{url.removesuffix('/').removesuffix('.git')}.git/info/lfs/objects/batch"


async def fetch_objects(
    url: str, pointers: Sequence[Pointer], into: Path, *, policy: SourcePolicy, limits: LfsLimits
) -> dict[str, Missing]:
    """Write the objects of ``pointers`` into the folder ``into``, each under its id, and return why others are not.

    ``url`` is the https address of the repository, which ``policy`` allows. Only what has the size and the SHA-256 of
    its pointer is written. All of it stays within ``limits``; what ran out of time may be asked for again.
    """
    transfer = _Transfer(url, into, policy, limits)
    waiting = await transfer.ask(pointers)
    for _hop in range(limits.redirects + 1):
        if waiting:
            waiting = await transfer.fetch(waiting)
    transfer.give_up(waiting, Missing("its host redirects too often"))
    return transfer.missing


class _Transfer:
    """The objects of one repository on their way; ``missing`` says of each that does not arrive why."""

    def __init__(self, url: str, into: Path, policy: SourcePolicy, limits: LfsLimits) -> None:
        self.missing: dict[str, Missing] = {}
        self._url, self._into, self._policy, self._limits = url, into, policy, limits
        self._loop = asyncio.get_running_loop()
        self._ends_at = self._loop.time() + limits.seconds
        self._pinned: dict[tuple[str | None, int | None], Pinned | Missing] = {}
        self._login = policy.login_for(batch_address(url))
        parts = urlsplit(url)
        # A public repository must not send this server to hosts that only people inside can reach.
        self._may_be_private = may_lead_to_private(parts.hostname or "", parts.port, policy)

    async def ask(self, pointers: Sequence[Pointer]) -> list[_Place]:
        """Return where the host says that the objects are."""
        by_oid = {pointer.oid: pointer for pointer in pointers}
        url = batch_address(self._url)
        to = await self._checked(url)
        if isinstance(to, Missing):
            self.missing |= dict.fromkeys(by_oid, to)
            return []
        job = {
            "to": _contact(url, to, {"Authorization": self._login.header} if self._login is not None else None),
            "answer_bytes": self._limits.answer_bytes,
            "objects": [{"oid": oid, "size": pointer.size} for oid, pointer in by_oid.items()],
        }
        lines = await self._run("ask", job, pointers)
        places = [one for one in lines if one["end"] == "place"]
        return [
            _Place(by_oid[one["oid"]], one["url"], self._not_ours(one["url"], _harmless(one["headers"])))
            for one in places
        ]

    async def fetch(self, places: Iterable[_Place]) -> list[_Place]:
        """Fetch what is at ``places``, and return where redirects say that the rest is."""
        going: dict[str, tuple[_Place, Pinned]] = {}
        for place in places:
            to = await self._checked(place.url)
            if isinstance(to, Missing):
                self.missing[place.pointer.oid] = to
            else:
                going[place.pointer.oid] = (place, to)
        if not going:
            return []
        objects = [
            {"oid": oid, "size": place.pointer.size, "to": _contact(place.url, to, place.headers)}
            for oid, (place, to) in going.items()
        ]
        lines = await self._run("fetch", {"objects": objects}, [place.pointer for place, _ in going.values()])
        return [_redirected(going[one["oid"]][0], one["text"]) for one in lines if one["end"] == "redirect"]

    def give_up(self, places: Iterable[_Place], missing: Missing) -> None:
        """Note of the objects at ``places`` why they do not arrive."""
        self.missing |= {place.pointer.oid: missing for place in places}

    async def _checked(self, url: str) -> Pinned | Missing:
        """Return the addresses that may be contacted for ``url``, or why there are none."""
        try:
            parts = urlsplit(url)
            place = (parts.hostname, parts.port)
        except ValueError:
            return Missing("its host names no address for it")
        if not _URL.fullmatch(url) or "@" in parts.netloc:
            return Missing("its host names no plain https address for it")
        if place not in self._pinned:
            try:
                self._pinned[place] = await pin(
                    url, self._policy, seconds=self._left(), may_be_private=self._may_be_private
                )
            except HostNotAllowed:
                self._pinned[place] = Missing("it is at an address that is not on the public internet")
            except SourceError as error:
                self._pinned[place] = Missing("its host was not found by name", error.transient)
        return self._pinned[place]

    def _not_ours(self, url: str, headers: dict[str, str]) -> dict[str, str]:
        """Return ``headers`` for ``url`` without those in which the host repeats our login, unless it is its own."""
        login = self._login
        if login is None:
            return headers
        try:
            own = url.startswith("https://") and _origin(url) == _origin(self._url)
        except ValueError:
            own = False
        kept = {name: value for name, value in headers.items() if not login.repeated_in(value)}
        return headers if own else kept

    def _left(self) -> float:
        return max(0.01, self._ends_at - self._loop.time())

    async def _run(self, what: str, job: dict[str, Any], pointers: Sequence[Pointer]) -> list[dict[str, Any]]:
        """Return what a child says of each object that goes on, and note what it says of the others."""
        ca_file = self._policy.ca_file
        proxy = self._policy.proxy.for_child() if self._policy.proxy is not None else None
        result = await run_child(
            PreparedScript(_SCRIPT, (what,)),
            env={"LC_ALL": "C", "PYTHONUTF8": "1"},
            cwd=self._into,
            limits=ChildLimits(
                seconds=self._left(),
                output_bytes=_LINE_BYTES * len(pointers) + _LONGEST_IN_JSON * self._limits.answer_bytes,
                address_space=self._limits.memory_bytes,
                cpu_seconds=int(self._limits.seconds) + 1,
                file_bytes=max(pointer.size for pointer in pointers) + 1,
            ),
            stdin=json.dumps(
                {**job, "ca_file": str(ca_file) if ca_file is not None else None, "proxy": proxy}
            ).encode(),
        )
        if result.outcome is ChildOutcome.EXITED and (fault := fault_of_child(result.stderr)) is not None:
            raise MachineFault(f"objects of Git LFS could not be fetched on this server: {visible(fault, 200)}")
        # The last line may be cut short where the child was killed.
        lines: list[dict[str, Any]] = [json.loads(line) for line in result.stdout.split(b"\n")[:-1]]
        late = Missing(f"its host did not send it within {self._limits.seconds:g} seconds", transient=True)
        failed = Missing("it could not be fetched", transient=True)
        ended = {line["oid"] for line in lines}
        unsaid = late if result.outcome is ChildOutcome.TIMED_OUT else failed
        self.missing |= {pointer.oid: unsaid for pointer in pointers if pointer.oid not in ended}
        for line in lines:
            if line["end"] in ("refused", "unreachable"):
                self.missing[line["oid"]] = Missing(visible(line["text"], 200), line["end"] == "unreachable")
        return lines


def _contact(url: str, to: Pinned, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    return {"url": url, "host": to.host, "port": to.port, "addresses": to.addresses, "headers": dict(headers or {})}


def _harmless(headers: Mapping[str, str]) -> dict[str, str]:
    """Return those of the headers that a host may have us send to where it says that an object is.

    They are its own: our login is sent to its API alone, by nobody's choice.
    """
    kept = {
        name: value for name, value in headers.items() if _HEADER.fullmatch(name) and _HEADER_VALUE.fullmatch(value)
    }
    return dict(list(kept.items())[:_MOST_HEADERS])


def _redirected(place: _Place, location: str) -> _Place:
    """Return where a redirect leads to: to another host without the headers that were for this one."""
    try:
        url = urljoin(place.url, location)
        same = _origin(url) == _origin(place.url)
    except ValueError:
        return replace(place, url="", headers={})
    return replace(place, url=url, headers=place.headers if same else {})


def _origin(url: str) -> tuple[str | None, int]:
    parts = urlsplit(url)
    return parts.hostname, parts.port or 443
