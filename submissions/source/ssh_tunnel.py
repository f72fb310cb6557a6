"""Give ssh a connection through the proxy; ssh runs this file as its ProxyCommand.

Only the standard library is imported. What it connects to stands in one variable, as JSON, so that no text of anybody's
address is on a command line or in a shell. ssh checks the key of the host inside of the tunnel, as without a proxy.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
import sys
from typing import Any, Final
from urllib.parse import urlsplit

VARIABLE: Final = "VSKILL_SSH_TUNNEL"
_SECONDS: Final = 10.0
_BLOCK: Final = 64 * 1024
_HEAD_END: Final = b"\r\n\r\n"


class _Refused(Exception):
    """The proxy opens no tunnel; the message says why, and repeats nothing that it sent but its status."""


def main() -> int:
    """Copy between ssh and the place that the variable names, until one of them ends; return the exit status."""
    return asyncio.run(_run(json.loads(os.environ[VARIABLE])))


async def _run(job: dict[str, Any]) -> int:
    try:
        async with asyncio.timeout(_SECONDS):
            reader, writer = await _open(job)
    except (OSError, TimeoutError, EOFError, asyncio.LimitOverrunError, _Refused) as error:
        reason = str(error) if isinstance(error, _Refused) else type(error).__name__
        # By these words the one who reads the output of git knows that it was the proxy.
        sys.stderr.write(f"proxy CONNECT failed: {reason}\n")
        return 1
    loop = asyncio.get_running_loop()
    from_ssh = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(from_ssh), sys.stdin)
    copies = [asyncio.create_task(_to_ssh(reader)), asyncio.create_task(_to_host(from_ssh, writer))]
    await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
    for one in copies:
        one.cancel()
    await asyncio.gather(*copies, return_exceptions=True)
    writer.transport.abort()
    return 0


async def _open(job: dict[str, Any]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return both ends of a tunnel; raise _Refused where the proxy answers anything but yes."""
    proxy = urlsplit(job["proxy"])
    secure: ssl.SSLContext | None = None
    if proxy.scheme == "https":
        secure = ssl.create_default_context()
        if job["ca_file"]:
            secure.load_verify_locations(job["ca_file"])
    reader, writer = await asyncio.open_connection(proxy.hostname, proxy.port, ssl=secure, limit=_BLOCK)
    lines = [f"CONNECT {job['to']} HTTP/1.1", f"Host: {job['to']}", "User-Agent: vskill"]
    if job["login"]:
        lines.append(f"Proxy-Authorization: Basic {base64.b64encode(job['login'].encode()).decode('ascii')}")
    writer.write("\r\n".join(lines).encode("ascii") + _HEAD_END)
    await writer.drain()
    # What comes after the head is of the host, and stays in the reader.
    status = (await reader.readuntil(_HEAD_END)).split(b"\r\n", 1)[0].split(b" ")
    if not status[0].startswith(b"HTTP/1.") or len(status) < 2 or not status[1].isdigit():
        raise _Refused("it does not speak HTTP")
    if status[1][:1] != b"2":
        raise _Refused(f"status {status[1][:3].decode('ascii')}")
    return reader, writer


async def _to_ssh(reader: asyncio.StreamReader) -> None:
    while block := await reader.read(_BLOCK):
        await asyncio.to_thread(_write, block)


def _write(block: bytes) -> None:
    sys.stdout.buffer.write(block)
    sys.stdout.buffer.flush()


async def _to_host(from_ssh: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while block := await from_ssh.read(_BLOCK):
        writer.write(block)
        await writer.drain()


if __name__ == "__main__":
    sys.exit(main())
