"""Speak the LFS API of one host, or fetch objects; runs only as a limited child process.

The parent has checked every host and says which addresses to connect to, so nothing is resolved here. A redirect is
reported and not followed. The job is JSON on stdin; the answer is a line of JSON for each thing that was asked for.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import ssl
import sys
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import urllib3

_MEDIA_TYPE: Final = "application/vnd.git-lfs+json"
_TIMEOUT: Final = urllib3.Timeout(connect=10, read=20)
_BLOCK: Final = 64 * 1024
_TRIED_ADDRESSES: Final = 3
_AGAIN: Final = frozenset({408, 425, 429})
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_TROUBLE: Final = (urllib3.exceptions.HTTPError, http.client.HTTPException, OSError)


class _Ended(Exception):
    """An exchange that gave nothing: its answer is ``end`` ("refused", "unreachable" or "redirect") and a text."""

    def __init__(self, end: str, text: str) -> None:
        super().__init__(text)
        self.end = end
        self.text = text


class _Client:
    """Sends requests to the addresses that they name, and to no other."""

    def __init__(self, ca_file: str | None) -> None:
        self._context = ssl.create_default_context()
        if ca_file is not None:
            self._context.load_verify_locations(ca_file)
        self._pools: dict[tuple[str, int], urllib3.HTTPSConnectionPool] = {}

    def send(self, method: str, to: dict[str, Any], body: bytes | None = None) -> urllib3.BaseHTTPResponse:
        """Return the response of status 200 to one request; raise ``_Ended`` for anything else."""
        parts = urlsplit(to["url"])
        host, port = str(to["host"]), int(to["port"])
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        name = f"[{host}]" if ":" in host else host
        headers = {
            "User-Agent": "vskill",
            "Accept-Encoding": "identity",
            **to["headers"],
            "Host": name if port == 443 else f"{name}:{port}",
        }
        response = self._answer(method, target, headers, body, (host, port), to["addresses"])
        if response.status == 200:
            return response
        location = response.headers.get("Location", "")
        response.close()
        if response.status in _REDIRECTS:
            raise _Ended("redirect", location[:8192])
        end = "unreachable" if response.status >= 500 or response.status in _AGAIN else "refused"
        raise _Ended(end, f"its host answers with status {response.status}")

    def _answer(
        self,
        method: str,
        target: str,
        headers: dict[str, str],
        body: bytes | None,
        place: tuple[str, int],
        addresses: list[str],
    ) -> urllib3.BaseHTTPResponse:
        known = [self._pools[place]] if place in self._pools else []
        fresh = (self._pool(place, address) for address in addresses[:_TRIED_ADDRESSES])
        failure: Exception | None = None
        for pool in known or fresh:
            try:
                response = pool.urlopen(
                    method,
                    target,
                    body=body,
                    headers=headers,
                    redirect=False,
                    retries=False,
                    preload_content=False,
                    decode_content=False,
                )
            except _TROUBLE as error:
                failure = error
            else:
                self._pools[place] = pool
                return response
        raise _Ended("unreachable", _said(failure))

    def _pool(self, place: tuple[str, int], address: str) -> urllib3.HTTPSConnectionPool:
        return urllib3.HTTPSConnectionPool(
            f"[{address}]" if ":" in address else address,
            place[1],
            # The name is what the certificate has to be for.
            server_hostname=place[0],
            ssl_context=self._context,
            timeout=_TIMEOUT,
            maxsize=1,
        )


def _said(failure: Exception | None) -> str:
    text = str(failure).lower()
    if "certificate" in text:
        return "the certificate of its host could not be verified"
    return "its host sends nothing" if "timed out" in text else "its host could not be reached"


def _chunks(response: urllib3.BaseHTTPResponse) -> Generator[bytes]:
    try:
        yield from response.stream(_BLOCK, decode_content=False)
    except _TROUBLE:
        raise _Ended("unreachable", "the transfer from its host broke off") from None
    finally:
        response.close()


def _ask(client: _Client, job: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Ask the batch API where the objects of ``job`` are, and yield a place or the end of each."""
    asked: dict[str, int] = {one["oid"]: one["size"] for one in job["objects"]}
    question = {"operation": "download", "transfers": ["basic"], "objects": job["objects"]}
    to = {**job["to"], "headers": {"Accept": _MEDIA_TYPE, "Content-Type": _MEDIA_TYPE}}
    try:
        answer = bytearray()
        with closing(_chunks(client.send("POST", to, json.dumps(question).encode("ascii")))) as chunks:
            for chunk in chunks:
                answer += chunk
                if len(answer) > job["answer_bytes"]:
                    raise _Ended("refused", "its host answers with too much")
        told = _parse(bytes(answer))
    except _Ended as ended:
        text = "its host answers with a redirect" if ended.end == "redirect" else ended.text
        end = "refused" if ended.end == "redirect" else ended.end
        yield from ({"oid": oid, "end": end, "text": text} for oid in asked)
        return
    for one in told:
        # Each once, and nothing that was not asked for.
        if isinstance(one, dict) and asked.pop(str(one.get("oid")), None) is not None:
            yield _place(one)
    yield from ({"oid": oid, "end": "refused", "text": "its host does not have it"} for oid in asked)


def _parse(answer: bytes) -> list[Any]:
    try:
        told = json.loads(answer)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict) or not isinstance(told.get("objects"), list):
        raise _Ended("refused", "its host has no Git LFS")
    if told.get("transfer", "basic") != "basic":
        raise _Ended("refused", "its host offers no plain download")
    objects: list[Any] = told["objects"]
    return objects


def _place(one: dict[str, Any]) -> dict[str, Any]:
    actions = one.get("actions")
    download = actions.get("download") if isinstance(actions, dict) else None
    if not isinstance(download, dict) or not isinstance(download.get("href"), str):
        return {"oid": one["oid"], "end": "refused", "text": "its host does not have it"}
    header = download.get("header")
    pairs = header.items() if isinstance(header, dict) else ()
    headers = {name: value for name, value in pairs if isinstance(value, str)}
    return {"oid": one["oid"], "end": "place", "url": download["href"], "headers": headers}


def _fetch(client: _Client, job: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Write the objects of ``job`` into the working directory, each under its id once all of it was checked."""
    for one in job["objects"]:
        try:
            _write(client, one)
        except _Ended as ended:
            yield {"oid": one["oid"], "end": ended.end, "text": ended.text}
        else:
            yield {"oid": one["oid"], "end": "fetched"}


def _write(client: _Client, one: dict[str, Any]) -> None:
    size, digest, received = one["size"], hashlib.sha256(), 0
    response = client.send("GET", one["to"])
    wrong = _Ended("refused", "what its host sends is another file")
    if response.headers.get("Content-Length", str(size)) != str(size):
        response.close()
        raise wrong
    part = Path(f"{one['oid']}.part")
    with part.open("wb") as file, closing(_chunks(response)) as chunks:
        for chunk in chunks:
            received += len(chunk)
            if received > size:
                raise wrong
            digest.update(chunk)
            file.write(chunk)
    if received != size or digest.hexdigest() != one["oid"]:
        raise wrong
    part.rename(one["oid"])


def main(arguments: list[str]) -> None:
    """Do the job that ``arguments`` name, ``ask`` or ``fetch``, and print a line for each object as soon as it ends."""
    job: dict[str, Any] = json.loads(sys.stdin.buffer.read())
    client = _Client(job["ca_file"])
    for line in (_ask if arguments == ["ask"] else _fetch)(client, job):
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
