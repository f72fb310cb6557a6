"""Fetch what lies at one address and say what it is by a hash; runs only as a limited child process.

The parent has checked the host and says which addresses to connect to. A redirect is reported and not followed. The job
is JSON on stdin, the answer one line of JSON. Nothing of what was sent is kept.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from contextlib import closing
from html.parser import HTMLParser
from typing import Any, Final

from submissions.source.pinned_client import Ended, PinnedClient, chunks_of

_UNREAD: Final = frozenset({"script", "style", "noscript", "template", "svg"})
_LABEL: Final = re.compile(r"[!-~ ]{1,300}")


class _Text(HTMLParser):
    """Collects what a reader sees of a page: its tags, scripts and remarks change with every request."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.words: list[str] = []
        self._unread = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._unread += tag in _UNREAD
        # Where a link leads is a part of what a page says.
        self.words += [value.partition("?")[0] for name, value in attrs if name == "href" and value and tag == "a"]

    def handle_endtag(self, tag: str) -> None:
        self._unread = max(0, self._unread - (tag in _UNREAD))

    def handle_data(self, data: str) -> None:
        if not self._unread:
            self.words += data.split()


def _digest(content: bytes, media_type: str) -> str:
    """Return the SHA-256 of the content, of a page that of the words on it."""
    if not media_type.lower().startswith(("text/html", "application/xhtml")):
        return hashlib.sha256(content).hexdigest()
    page = _Text()
    page.feed(content.decode("utf-8", "replace"))
    page.close()
    return hashlib.sha256("\n".join(page.words).encode("utf-8", "surrogatepass")).hexdigest()


def _fetched(job: dict[str, Any]) -> dict[str, Any]:
    response = PinnedClient(job["ca_file"], job["proxy"]).send("GET", job["to"], wanted=(200, 304))
    if response.status == 304:
        response.close()
        return {"end": "unchanged"}
    content = bytearray()
    with closing(chunks_of(response)) as chunks:
        for chunk in chunks:
            content += chunk
            if len(content) > job["bytes"]:
                raise Ended("refused", f"it is larger than {job['bytes'] // 1024} KiB")
    labels = {
        name: response.headers.get(header, "") for name, header in (("etag", "ETag"), ("modified", "Last-Modified"))
    }
    return {
        "end": "fetched",
        "sha256": _digest(bytes(content), response.headers.get("Content-Type", "")),
        "size": len(content),
        **{name: value if _LABEL.fullmatch(value) else "" for name, value in labels.items()},
    }


def main(_arguments: list[str]) -> None:
    """Do the job on stdin, and print what was found."""
    job: dict[str, Any] = json.loads(sys.stdin.buffer.read())
    try:
        answer = _fetched(job)
    except Ended as ended:
        answer = {"end": ended.end, "text": ended.text}
    sys.stdout.write(json.dumps(answer) + "\n")
