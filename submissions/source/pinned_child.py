"""Ask addresses in a limited child, which connects to those that were checked and to no other."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from submissions.sandbox.child_processes import ChildLimits, ChildResult, PreparedScript, run_child
from submissions.source.pinning import Pinned
from submissions.source.urls import SourcePolicy

logger = logging.getLogger(__name__)

_MEMORY: Final = 512 * 1024 * 1024
_LONGEST_LINE: Final = 64 * 1024
# Of one answer.
_MOST_LINES: Final = 4
# One whose socket is closed has ended, or is about to.
_END_SECONDS: Final = 2.0


async def ask_in_child(
    script: Path,
    url: str,
    to: Pinned,
    *,
    policy: SourcePolicy,
    headers: Mapping[str, str],
    seconds: float,
    cpu_seconds: int,
    output_bytes: int,
    more: Mapping[str, Any],
) -> ChildResult:
    """Return how a ``script`` ended that asks ``url`` by a ``PinnedClient``, with the ``headers``.

    It reads a job of JSON, in which are ``to`` for the client, ``ca_file`` and ``proxy`` of the ``policy``, and what
    ``more`` has. ``seconds`` are of wall-clock time, ``cpu_seconds`` of processor time, and ``output_bytes`` is the
    most that it may print.
    """
    job = {"to": _to(url, to, headers), **_client_of(policy), **more}
    limits = _limits(seconds, cpu_seconds, output_bytes)
    return await _run(script, limits, json.dumps(job).encode("ascii"))


class ServingChild:
    """A limited child that asks one address after another, by connections of their own, until it is closed.

    Its ``script`` talks over a socket on its stdin: it reads a line of JSON that says how a ``PinnedClient`` is made,
    then a line with ``to`` and more for each address, and answers each with some lines, of which the last is
    ``{"done": true}``. ``seconds`` and ``cpu_seconds`` are what it has for all of them.
    """

    def __init__(self, script: Path, policy: SourcePolicy, *, seconds: float, cpu_seconds: int) -> None:
        ours, self._theirs = socket.socketpair()
        self._ours = ours
        self._ends_at = asyncio.get_running_loop().time() + seconds
        self._child = asyncio.create_task(_run(script, _limits(seconds, cpu_seconds, 0), self._theirs))
        self._hello = _line(_client_of(policy))
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.asked = 0

    @property
    def seconds_left(self) -> float:
        """Return for how long it goes on."""
        return self._ends_at - asyncio.get_running_loop().time()

    async def ask(
        self, url: str, to: Pinned, headers: Mapping[str, str], more: Mapping[str, Any], *, seconds: float
    ) -> Asked:
        """Return what it answered about ``url``, within ``seconds`` and by the ``headers``; ``more`` is for the script.

        After an answer that is not ``clean``, all that is left is to close it. Raises OSError where it cannot begin.
        """
        self.asked += 1
        found: dict[str, Any] = {}
        try:
            async with asyncio.timeout(seconds):
                if self._streams is None:
                    self._streams = await asyncio.open_connection(sock=self._ours, limit=_LONGEST_LINE)
                    self._streams[1].write(self._hello)
                reader, writer = self._streams
                writer.write(_line({"to": _to(url, to, headers), **more}))
                await writer.drain()
                for _line_number in range(_MOST_LINES):
                    line = await reader.readline()
                    # One that was killed while it wrote has left half a line.
                    if not line.endswith(b"\n"):
                        break
                    said = json.loads(line)
                    if said.pop("done", False):
                        return Asked(found, clean=True)
                    found |= said
        except TimeoutError:
            return Asked(found, timed_out=True)
        except (ConnectionError, ValueError):
            logger.debug("a child said what is no answer, or ended", exc_info=True)
        return Asked(found, stderr=await self._last_words())

    async def close(self) -> None:
        """End it, whatever it does."""
        if self._streams is not None:
            self._streams[1].transport.abort()
        else:
            self._ours.close()
        self._child.cancel()
        await asyncio.gather(self._child, return_exceptions=True)
        # One that was cancelled before it began has not taken it.
        self._theirs.close()

    async def _last_words(self) -> bytes:
        """Return what it wrote on its stderr before it ended; raise OSError where it never began."""
        done, _ = await asyncio.wait([self._child], timeout=_END_SECONDS)
        return b"".join([one.result().stderr for one in done])


@dataclass(frozen=True)
class Asked:
    """What a child answered: all that it ``found``, and whether that came to its end in time and in order.

    ``stderr`` is what one wrote that has ended instead.
    """

    found: Mapping[str, Any]
    clean: bool = False
    timed_out: bool = False
    stderr: bytes = b""


def _line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value).encode("ascii") + b"\n"


def _to(url: str, to: Pinned, headers: Mapping[str, str]) -> dict[str, Any]:
    return {"url": url, "host": to.host, "port": to.port, "addresses": to.addresses, "headers": dict(headers)}


def _client_of(policy: SourcePolicy) -> dict[str, Any]:
    return {
        "ca_file": str(policy.ca_file) if policy.ca_file is not None else None,
        "proxy": policy.proxy.for_child() if policy.proxy is not None else None,
    }


def _limits(seconds: float, cpu_seconds: int, output_bytes: int) -> ChildLimits:
    return ChildLimits(
        seconds=seconds, output_bytes=output_bytes, address_space=_MEMORY, cpu_seconds=cpu_seconds, file_bytes=0
    )


async def _run(script: Path, limits: ChildLimits, stdin: bytes | socket.socket) -> ChildResult:
    with tempfile.TemporaryDirectory(prefix=f"vskill-{script.stem}-") as folder:
        return await run_child(
            PreparedScript(script, ()),
            env={"LC_ALL": "C", "PYTHONUTF8": "1"},
            cwd=Path(folder),
            limits=limits,
            stdin=stdin,
        )
