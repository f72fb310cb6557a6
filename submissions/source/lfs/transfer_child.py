"""Speak the LFS API of one host, or fetch objects; runs only as a limited child process.

The parent has checked every host and says which addresses to connect to, so nothing is resolved here. A redirect is
reported and not followed. The job is JSON on stdin; the answer is a line of JSON for each thing that was asked for.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from submissions.source.pinned_client import Ended, PinnedClient, chunks_of

_MEDIA_TYPE: Final = "application/vnd.git-lfs+json"


def _ask(client: PinnedClient, job: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Ask the batch API where the objects of ``job`` are, and yield a place or the end of each."""
    asked: dict[str, int] = {one["oid"]: one["size"] for one in job["objects"]}
    question = {"operation": "download", "transfers": ["basic"], "objects": job["objects"]}
    headers = {**job["to"]["headers"], "Accept": _MEDIA_TYPE, "Content-Type": _MEDIA_TYPE}
    to = {**job["to"], "headers": headers}
    try:
        answer = bytearray()
        with closing(chunks_of(client.send("POST", to, json.dumps(question).encode("ascii")))) as chunks:
            for chunk in chunks:
                answer += chunk
                if len(answer) > job["answer_bytes"]:
                    raise Ended("refused", "its host answers with too much")
        told = _parse(bytes(answer))
    except Ended as ended:
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
        raise Ended("refused", "its host has no Git LFS")
    if told.get("transfer", "basic") != "basic":
        raise Ended("refused", "its host offers no plain download")
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


def _fetch(client: PinnedClient, job: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Write the objects of ``job`` into the working directory, each under its id once all of it was checked."""
    for one in job["objects"]:
        try:
            _write(client, one)
        except Ended as ended:
            yield {"oid": one["oid"], "end": ended.end, "text": ended.text}
        else:
            yield {"oid": one["oid"], "end": "fetched"}


def _write(client: PinnedClient, one: dict[str, Any]) -> None:
    size, digest, received = one["size"], hashlib.sha256(), 0
    response = client.send("GET", one["to"])
    wrong = Ended("refused", "what its host sends is another file")
    if response.headers.get("Content-Length", str(size)) != str(size):
        response.close()
        raise wrong
    part = Path(f"{one['oid']}.part")
    with part.open("wb") as file, closing(chunks_of(response)) as chunks:
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
    client = PinnedClient(job["ca_file"], job["proxy"])
    for line in (_ask if arguments == ["ask"] else _fetch)(client, job):
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
