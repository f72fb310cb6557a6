"""Tell which pictures a skill shows or names, because text in them is not read, and what is put behind a picture."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final

from submissions.verification.engine.decoding import is_text
from submissions.verification.engine.parts import Part

NOT_READ: Final = "Text in pictures is not read."
_PICTURE: Final = re.compile(
    rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|GIF8[79]a|RIFF....WEBP|\x00\x00\x01\x00|....ftyp(?:avif|heic|mif1)|II\*\0|MM\0\*"
    rb"|BM....\0\0\0\0",
    re.DOTALL,
)
_NAMED: Final = re.compile(r"[\w.%+-]{1,200}\.(?:png|jpe?g|gif|webp|ico|bmp|tiff?|avif|heic)\b", re.IGNORECASE)
# What ends a picture of a kind, and how many bytes of it come after that mark.
_ENDS: Final = ((b"\x89PNG", b"IEND", 8), (b"\xff\xd8\xff", b"\xff\xd9", 2), (b"GIF8", b"\x00;", 2))
_SHORTEST: Final = 12


def is_picture(data: bytes) -> bool:
    """Return whether a file begins as a picture does."""
    return _PICTURE.match(data) is not None


def named_pictures(pictures: Sequence[str], parts: Iterable[Part]) -> Iterator[str]:
    """Yield the ``pictures`` whose names stand in one of the ``parts``."""
    if not pictures:
        return
    named = {urllib.parse.unquote(one).rpartition(" ")[2] for part in parts for one in _NAMED.findall(part.text)}
    yield from (one for one in pictures if PurePosixPath(one).name.rpartition(" ")[2] in named)


def text_behind(data: bytes) -> str:
    """Return the text that is put behind the end of a picture, or ''."""
    for start, mark, length in _ENDS:
        if data.startswith(start):
            at = data.rfind(mark)
            rest = data[at + length :].strip(b"\0") if at >= 0 else b""
            text = rest.decode("utf-8", "replace") if len(rest) >= _SHORTEST and b"\0" not in rest else ""
            return text if text and is_text(text) else ""
    return ""
