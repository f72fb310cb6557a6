"""Images of a skill, sent as what their bytes are and as nothing that a browser could run."""

from __future__ import annotations

import struct
from typing import Final

from django.http import Http404, HttpResponseBase

from marketplace.artifacts.stored import read_file
from marketplace.pages.skill import Found
from vskill.environments import WorkerEnv

LARGEST: Final = 5 * 1024 * 1024
# A small file can describe an image that fills the memory of whoever looks at it.
MOST_PIXELS: Final = 40_000_000
_NO_IMAGE: Final = "This version has no such image, or one of a kind or size that is not shown."
# A day, as for single files of the API: a cached copy must not outlive a quarantine by more than that.
_EXACT: Final = "public, max-age=86400, immutable"


def image_response(env: WorkerEnv, found: Found, path: str, *, pinned: bool, asynchronous: bool) -> HttpResponseBase:
    """Return the image at ``path`` in the version that was ``found``.

    ``pinned`` says that its address names the version, so that it can be cached, and ``asynchronous`` whether the
    server is. Raises ``Http404`` for anything but a PNG, JPEG, GIF or WebP of a size that can be shown. An SVG is a
    document that may run scripts, so it is not among them.
    """
    listed = found.version.file(path)
    if listed is None or listed["size"] > LARGEST:
        raise Http404(_NO_IMAGE)
    response = read_file(env, found.version.zip_sha256, path, _image_type, asynchronous=asynchronous)
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "default-src 'none'; sandbox"
    response["Cross-Origin-Resource-Policy"] = "same-origin"
    response["Content-Disposition"] = "inline"
    response["Cache-Control"] = _EXACT if pinned else "no-cache"
    response["ETag"] = f'"{listed["sha256"]}"'
    return response


def _image_type(content: bytes) -> str:
    if kind := shown_as(content):
        return kind
    raise Http404(_NO_IMAGE)


def shown_as(content: bytes) -> str:
    """Return the media type as which an image is shown, or an empty string for what is not shown as one."""
    kind, width, height = measure(content)
    return kind if 0 < width * height <= MOST_PIXELS and len(content) <= LARGEST else ""


def measure(content: bytes) -> tuple[str, int, int]:
    """Return the media type of an image, its width and its height in pixels, all from its bytes; '' for no image."""
    try:
        if content.startswith(b"\x89PNG\r\n\x1a\n") and content[12:16] == b"IHDR":
            return ("image/png", *struct.unpack(">II", content[16:24]))
        if content[:6] in (b"GIF87a", b"GIF89a"):
            return ("image/gif", *struct.unpack("<HH", content[6:10]))
        if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
            return ("image/webp", *_webp(content))
        if content.startswith(b"\xff\xd8\xff"):
            return ("image/jpeg", *_jpeg(content))
    except (struct.error, IndexError):
        pass
    return "", 0, 0


def _webp(content: bytes) -> tuple[int, int]:
    kind = content[12:16]
    if kind == b"VP8X":
        return int.from_bytes(content[24:27], "little") + 1, int.from_bytes(content[27:30], "little") + 1
    if kind == b"VP8L":
        bits = struct.unpack("<I", content[21:25])[0]
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        width, height = struct.unpack("<HH", content[26:30])
        return width & 0x3FFF, height & 0x3FFF
    return 0, 0


def _jpeg(content: bytes) -> tuple[int, int]:
    place = 2
    while content[place] == 0xFF:
        marker = content[place + 1]
        # A start of frame has the size; C4, C8 and CC are other segments.
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", content[place + 5 : place + 9])
            return width, height
        place += 2 + int(struct.unpack(">H", content[place + 2 : place + 4])[0])
    return 0, 0
