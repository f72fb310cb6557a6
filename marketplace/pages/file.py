"""Show one file of a published version: its lines in colours, deceptive characters escaped, Markdown and images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from marketplace.addresses import file_href, skill_href
from marketplace.artifacts.archives import read_member
from marketplace.errors import InvalidLines
from marketplace.models import ArchiveBlob
from marketplace.pages.file_parts import PART_LINES, Lines, at_line, at_part
from marketplace.pages.images import LARGEST, shown_as
from marketplace.pages.scan_report import findings_about, not_read
from marketplace.pages.skill import Found, raw_path, rendered
from marketplace.pages.text_links import RASTER, image_href
from marketplace.syntax.colouring import Part, colouring
from vskill.environments import WorkerEnv
from vskill.hidden_characters import escape_hidden, in_braces, visible

LARGEST_SHOWN: Final = 1_000_000
LONGEST_LINE: Final = 2_000
_MARKDOWN: Final = (".md", ".markdown")


def file_context(env: WorkerEnv, found: Found, path: str, part: Lines) -> dict[str, Any] | None:
    """Return the template context of the page of the file at ``path``, or ``None`` where ``found`` has no such file.

    ``part`` says which of its lines are shown. Raises ``InvalidLines`` where the file ends before them.
    """
    listed = found.version.file(path)
    if listed is None:
        return None
    findings = findings_about(found, path)
    address = file_href(found.skill.slug, path)
    permalink = f"{address}?{urlencode({'version': found.version.version})}"
    context: dict[str, Any] = {
        "file": {
            **listed,
            "path": visible(path),
            "name": visible(path.rpartition("/")[2]),
            "raw_href": raw_path(found, path),
            "href": address,
            "permalink": permalink,
            "line_count": None,
        },
        "all_files_href": skill_href(found.skill.slug, "files") + found.exact,
        "findings": findings,
        "not_read": not_read(found, path),
        "lines": None,
        "part": None,
        "unreadable": "",
        "rendered": "",
        "image_href": "",
    }
    may_be_image = path.lower().endswith(RASTER) and listed["size"] <= LARGEST
    if listed["size"] > LARGEST_SHOWN and not may_be_image:
        context["unreadable"] = (
            "This file is too large to be shown here. The plain file and the archive have all of it."
        )
        return context
    blob = ArchiveBlob.objects.using(env.database).get(sha256=found.version.zip_sha256)
    content = read_member(bytes(blob.content), path)
    if may_be_image and shown_as(content):
        context["image_href"] = image_href(found.skill.slug, path, found.exact)
        return context
    text = as_text(content)
    if text is None:
        context["unreadable"] = "This is not a text file, so there is nothing to read here."
        return context
    lines = text.removesuffix("\n").split("\n") if text else []
    context["file"]["line_count"] = len(lines)
    context["file"]["permalink"] = at_part(permalink, part.first)
    context["part"] = _part(address + found.exact, part, len(lines), visible(path))
    context["file_findings"] = _marked(findings, address + found.exact, part, len(lines), visible(path))
    context["any_marked"] = any(one["href"] for one in context["file_findings"])
    context["lines"] = _lines(path, text, lines, part, {one["line"] for one in findings if one.get("line")})
    if path.lower().endswith(_MARKDOWN):
        context["is_markdown"] = True
        # Once, above the source that it begins.
        context["rendered"] = rendered(found, path, text) if part.first == 1 else ""
    return context


def _lines(path: str, text: str, lines: Sequence[str], part: Lines, flagged: set[int]) -> list[dict[str, Any]]:
    shown = slice(part.first - 1, min(part.last, len(lines)))
    # A line end at the end of a file gives one line too many in the parts, which the slice leaves out.
    coloured = colouring.lines(path, text)
    pieces = coloured[shown] if coloured is not None else [[(line, "")] for line in lines[shown]]
    return [
        {"number": number, "html": in_colours(one), "flagged": number in flagged}
        for number, one in enumerate(pieces, start=part.first)
    ]


def _part(address: str, part: Lines, count: int, name: str) -> dict[str, Any] | None:
    """Return which lines of a long file are shown and the addresses of its other parts; ``None`` for a short file."""
    if part.first > max(count, 1):
        raise InvalidLines(
            f"{name} has {count:,} line{'s' if count != 1 else ''}. The address asks for its lines from "
            f"{part.first:,} on, which are not there."
        )
    if count <= PART_LINES:
        return None
    return {
        "first": part.first,
        "last": min(part.last, count),
        "size": PART_LINES,
        "earlier": at_part(address, part.first - PART_LINES) if part.first > 1 else "",
        "later": at_part(address, part.last + 1) if part.last < count else "",
    }


def _marked(
    findings: Sequence[Mapping[str, Any]], address: str, part: Lines, count: int, path: str
) -> list[dict[str, Any]]:
    """Return the findings with where each leads: a line of this part, one of another, or none that the file has."""
    shown = []
    for one in findings:
        line = one.get("line") or 0
        here = part.first <= line <= part.last
        href = "" if not 1 <= line <= count else f"#L{line}" if here else at_line(address, line)
        shown.append({"line": line, "title": _title(one, path), "href": href})
    return shown


def _title(finding: Mapping[str, Any], path: str) -> str:
    title, file = str(finding.get("title") or finding.get("ruleId", "")), str(finding.get("file"))
    return title if file == path else f"{title} ({file})"


def as_text(content: bytes) -> str | None:
    """Return the content as text, without a byte-order mark and with LF line ends, or ``None`` if it is binary."""
    if b"\0" in content:
        return None
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return None


def in_colours(parts: list[Part]) -> SafeString:
    r"""Return a line as HTML, cut after ``LONGEST_LINE``, with invisible and deceptive characters as ``\u{...}``."""
    return format_html_join("", "{}", ((shown,) for shown in _shown(parts)))


def _shown(parts: list[Part]) -> Iterator[str]:
    left = LONGEST_LINE
    for piece, colour in parts:
        if left > 0:
            text = escape_hidden(piece[:left], in_braces, keep="\t")
            yield format_html('<span class="code-{}">{}</span>', colour, text) if colour else text
        left -= len(piece)
    if left < 0:
        yield f" … ({-left:,} more characters)"
