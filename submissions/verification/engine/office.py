"""Read what office documents, books and PDFs hold beside what they show: macros, relations, fields and scripts."""

from __future__ import annotations

import html
import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Final

from submissions.verification.archives_inside import ArchiveLimits
from submissions.verification.engine.macros import OLE_MAGIC, read_compound
from submissions.verification.engine.markdown import read_markdown
from submissions.verification.engine.parts import Kind, Part
from submissions.verification.engine.pdf import read_pdf
from submissions.verification.engine.vocabulary import SCRIPT_LANGUAGES
from submissions.verification.file_kinds import is_document

DOCUMENT_MAGIC: Final = (b"%PDF-", b"PK\x03\x04", OLE_MAGIC)
"""How the files that ``read_document`` may know begin."""
_LIMITS: Final = ArchiveLimits()
_LONGEST_MEMBER: Final = 3_000_000
_LONGEST_TEXT: Final = 200_000
_DEEPEST: Final = 2
_TEXTS: Final = re.compile(
    r"word/(?:document|header\d*|footer\d*|footnotes|endnotes|comments|glossary/document)\.xml|xl/sharedStrings\.xml"
    r"|ppt/(?:slides|notesSlides)/[^/]+\.xml|content\.xml|.*\.x?html?|doc\.kml",
    re.IGNORECASE,
)
_SETTINGS: Final = re.compile(
    r".*\.rels|xl/worksheets/[^/]+\.xml|xl/externalLinks/[^/]+\.xml|meta\.xml|settings\.xml", re.IGNORECASE
)
_SCRIPTS: Final = re.compile(r"(?:Basic/.+\.xml|(?:Object \d+/)?Scripts/.+)", re.IGNORECASE)
_HELD: Final = re.compile(r"(?:.*/)?(?:embeddings|activeX)/.+|ObjectReplacements/.+|.*vbaProject\.bin", re.IGNORECASE)
# What documents hold besides: layout, pictures, fonts, tables of contents.
_PLAIN: Final = re.compile(
    r".*(?:\.(?:xml|rels|rdf|png|jpe?g|gif|bmp|tiff?|emf|wmf|svg|webp|ttf|otf|odttf|fntdata|woff2?|css|ncx|opf|vml|bin)|/)"
    r"|mimetype|Thumbnails/.+",
    re.IGNORECASE,
)
_MACRO_SHEET: Final = re.compile(r"xl/macrosheets/.+", re.IGNORECASE)
_PARAGRAPH: Final = re.compile(r"</(?:w:p|a:p|si|text:p|text:h|p|h[1-6]|li|tr)>", re.IGNORECASE)
_FIELD: Final = re.compile(r"<w:instrText\b[^<>]{0,200}>([^<>]{0,4000})</w:instrText>|w:instr=\"([^\"<>]{0,4000})\"")
_TAG: Final = re.compile(r"<[^<>]{0,4000}>")
_STARTS: Final = re.compile(r"<script:event-listener\b[^<>]{0,1000}script:event-name=\"(?:dom:load|office:|on-?load)")


@dataclass
class HeldDocument:
    """What a document holds: parts in order, and sentences about what of it was not read."""

    parts: list[Part] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def read_document(data: bytes, file: str) -> HeldDocument | None:
    """Return what a document ``file`` holds, or None for a file that is no document of these kinds."""
    if data.startswith(b"%PDF-"):
        parts, unread = read_pdf(data, file)
        return HeldDocument(parts, unread)
    if data.startswith(OLE_MAGIC):
        found = HeldDocument()
        _add_compound(data, file, "", found)
        if PurePosixPath(file).suffix.lower() != ".bin":
            found.unread.append("Of an old office document or an installer, only macros are read.")
        return found
    if data.startswith(b"PK") and is_document(file):
        return _read_zip(data, file, 1)
    return None


def _read_zip(data: bytes, file: str, depth: int) -> HeldDocument:
    found = HeldDocument()
    room = _LIMITS.total_bytes
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
            if len(infos) > _LIMITS.files:
                found.unread.append(f"Only {_LIMITS.files:,} of its {len(infos):,} members were looked at.")
            events = False
            for info in sorted(infos[: _LIMITS.files], key=lambda one: one.filename):
                name = info.filename
                if _MACRO_SHEET.fullmatch(name):
                    found.parts.append(Part(Kind.DATA, "macro sheet", file, language="office", origin=name))
                    found.unread.append("Its sheets of old macros are not read.")
                if not any(one.fullmatch(name) for one in (_TEXTS, _SETTINGS, _SCRIPTS, _HELD)):
                    if _PLAIN.fullmatch(name) is None:
                        found.unread.append(f"What {name!r} in it holds is not read.")
                    continue
                if info.flag_bits & 1:
                    found.unread.append("It is encrypted.")
                    break
                with archive.open(info) as stream:
                    content = stream.read(min(_LONGEST_MEMBER, room) + 1)
                room -= len(content)
                if len(content) > _LONGEST_MEMBER or room < 0:
                    found.unread.append(f"Only the beginning of {name!r} in it was read.")
                events = events or _STARTS.search(content[:_LONGEST_MEMBER].decode("utf-8", "replace")) is not None
                _read_member(content, name, file, depth, found)
                if room < 0:
                    break
            if events:
                found.parts = [replace(one, starts_itself=one.language == "vba") for one in found.parts]
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        found.unread.append(f"It is damaged or packed in a way that is not read here ({error}).")
    found.unread = list(dict.fromkeys(found.unread))[:20]
    return found


def _read_member(content: bytes, name: str, file: str, depth: int, found: HeldDocument) -> None:
    if content.startswith(OLE_MAGIC):
        _add_compound(content, file, name, found)
        return
    if _HELD.fullmatch(name):
        if content.startswith(b"PK"):
            if depth >= _DEEPEST:
                found.unread.append("It holds documents in documents, which are not read so deep.")
                return
            inner = _read_zip(content, file, depth + 1)
            found.parts += inner.parts
            found.unread += inner.unread
        elif not name.endswith(".xml"):
            found.unread.append(f"What {name!r} in it holds is not read.")
        return
    text = content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8", "replace")
    if _SCRIPTS.fullmatch(name):
        language = "vba" if name.endswith(".xml") else SCRIPT_LANGUAGES.get(name.rpartition(".")[2].lower(), "")
        code = html.unescape(_TAG.sub("", text)) if language == "vba" else text
        if code.strip() and not name.endswith(("script-lb.xml", "script-lc.xml")):
            found.parts.append(Part(Kind.CODE, code[:_LONGEST_TEXT], file, language=language, origin=name))
        return
    if _SETTINGS.fullmatch(name) or name == "content.xml":
        found.parts.append(Part(Kind.DATA, text, file, language="office", origin=name))
    if _TEXTS.fullmatch(name):
        fields = "".join(match[1] or match[2] or "" for match in _FIELD.finditer(text))
        if fields.strip():
            found.parts.append(
                Part(Kind.DATA, html.unescape(fields), file, language="office", origin=f"fields of {name}")
            )
        found.parts += _prose(text, name, file)


def _prose(text: str, name: str, file: str) -> Iterator[Part]:
    words = html.unescape(_TAG.sub("", _PARAGRAPH.sub("\n\n", _FIELD.sub("", text))))
    if len(words) > _LONGEST_TEXT:
        words = words[:_LONGEST_TEXT]
    for part in read_markdown(words, file):
        yield replace(part, line=1, origin=part.origin or name, heading=part.heading or PurePosixPath(file).stem)


def _add_compound(content: bytes, file: str, name: str, found: HeldDocument) -> None:
    held = read_compound(content)
    if held.macros.strip():
        found.parts.append(Part(Kind.CODE, held.macros, file, language="vba", origin=f"macros {name}".strip()))
    for package in held.packages[:5]:
        found.parts.append(Part(Kind.DATA, "package", file, language="office", origin=f"{name} {package}".strip()))
    if held.packages:
        found.unread.append("What is packed into it as an object is not read.")
    found.unread += held.unread
