"""Find what a PDF does beside being shown: scripts, programs that it starts, files in it. Its text is not read."""

from __future__ import annotations

import re
import zlib
from typing import Final

from submissions.verification.engine.parts import Kind, Part

_MOST_STREAMS: Final = 300
_MOST_BYTES: Final = 4_000_000
_NAME: Final = re.compile(rb"#([0-9A-Fa-f]{2})")
_STREAM: Final = re.compile(rb"\bstream\r?\n")
_BEFORE: Final = 600
_SCRIPT: Final = re.compile(
    rb"/JS\s{0,20}(?:\(((?:[^\\()]|\\.|\([^()]{0,2000}\)){0,20000})|<([0-9A-Fa-f\s]{0,40000})>)", re.DOTALL
)
_REFERRED: Final = re.compile(rb"/JS\s{0,20}(\d{1,10})\s{1,20}\d{1,5}\s{1,20}R\b")
_NUMBER: Final = re.compile(rb"(\d{1,10})\s{1,20}\d{1,5}$")
_OCTAL: Final = re.compile(rb"\\([0-7]{1,3}|.)", re.DOTALL)
_ESCAPES: Final = {b"n": b"\n", b"r": b"\n", b"t": b"\t"}
_DEEDS: Final = {
    "pdf launch": rb"/S\s{0,20}/Launch\b",
    "pdf script": rb"/S\s{0,20}/JavaScript\b",
    "pdf file": rb"/EmbeddedFile\b",
}
_STARTS: Final = re.compile(rb"/OpenAction\b|/AA\b")


def read_pdf(data: bytes, file: str) -> tuple[list[Part], list[str]]:
    """Return what a PDF does as parts, and sentences about what of it was not read."""
    text, whole = _with_objects(data)
    unread = ["It is a PDF, whose text is not read."]
    if not whole:
        unread.append("It has more packed objects than are looked at.")
    if re.search(rb"/Encrypt\b", text):
        unread.append("It is encrypted.")
    text = _plain_names(text)
    starts = _STARTS.search(text) is not None
    parts = [Part(Kind.DATA, word, file, language="office", origin="PDF") for word in _deeds(text)]
    for match in list(_SCRIPT.finditer(text))[:50]:
        code = _of_string(match[1]) if match[1] is not None else bytes.fromhex(_even(match[2]))
        said = code.decode("utf-16", "replace") if code.startswith(b"\xfe\xff") else code.decode("latin-1")
        if said.strip():
            parts.append(
                Part(Kind.CODE, said, file, language="pdf script", origin="script of the PDF", starts_itself=starts)
            )
    return parts, unread


def _plain_names(text: bytes) -> bytes:
    """Return ``text`` with the letters of names that are written as numbers put in."""
    return _NAME.sub(lambda match: bytes((int(match[1], 16),)), text)


def _deeds(text: bytes) -> list[str]:
    return [name for name, pattern in _DEEDS.items() if re.search(pattern, text)]


def _with_objects(data: bytes) -> tuple[bytes, bool]:
    """Return a PDF without what its streams hold, but with the objects and scripts that are packed in them."""
    scripts = {match[1] for match in _REFERRED.finditer(data)}
    kept, end, budget, read = [], 0, _MOST_BYTES, 0
    for match in _STREAM.finditer(data):
        if match.start() < end:
            continue
        kept.append(data[end : match.start()])
        before, _obj, head = data[max(match.start() - _BEFORE, 0) : match.start()].rpartition(b" obj")
        is_script = (number := _NUMBER.search(before)) is not None and number[1] in scripts
        end = data.find(b"endstream", match.end())
        end = len(data) if end < 0 else end
        if not is_script and b"/ObjStm" not in _plain_names(head):
            continue
        if read >= _MOST_STREAMS or budget <= 0:
            return b"\n".join([*kept, data[end:]]), False
        read += 1
        content = data[match.end() : end]
        if b"/Fl" in _plain_names(head):
            content = _inflated(content, budget)
        budget -= len(content)
        kept.append(b"/JS <" + content.hex().encode() + b">" if is_script else content)
        scripts |= {match[1] for match in _REFERRED.finditer(content)}
    kept.append(data[end:])
    return b"\n".join(kept), True


def _inflated(content: bytes, most: int) -> bytes:
    try:
        return zlib.decompressobj().decompress(content, most)
    except zlib.error:
        return b""


def _of_string(text: bytes) -> bytes:
    def letter(match: re.Match[bytes]) -> bytes:
        if match[1].isdigit():
            return bytes((int(match[1], 8) & 0xFF,))
        return _ESCAPES.get(match[1], match[1])

    return _OCTAL.sub(letter, text)


def _even(digits: bytes) -> str:
    joined = b"".join(digits.split()).decode()
    return joined + "0" * (len(joined) % 2)
