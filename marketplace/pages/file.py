"""Show one file of a published version: its lines in colours, deceptive characters escaped, Markdown and images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from marketplace.addresses import file_href, skill_href
from marketplace.artifacts.archives import read_member
from marketplace.models import ArchiveBlob
from marketplace.pages.images import LARGEST, shown_as
from marketplace.pages.scan_report import findings_about
from marketplace.pages.skill import Found, raw_path, rendered
from marketplace.pages.text_links import RASTER, image_href
from marketplace.syntax.colouring import Part, colouring
from vskill.environments import WorkerEnv
from vskill.hidden_characters import escape_hidden, in_braces, visible

LARGEST_SHOWN: Final = 1_000_000
MOST_LINES: Final = 5_000
LONGEST_LINE: Final = 2_000
_MARKDOWN: Final = (".md", ".markdown")


def file_context(env: WorkerEnv, found: Found, path: str) -> dict[str, Any] | None:
    """Return the template context of the page of one file, or ``None`` where the version has no such file."""
    listed = found.version.file(path)
    if listed is None:
        return None
    findings = findings_about(found, path)
    context: dict[str, Any] = {
        "file": {
            **listed,
            "path": visible(path),
            "name": visible(path.rpartition("/")[2]),
            "raw_href": raw_path(found, path),
            "permalink": f"{file_href(found.skill.slug, path)}?{urlencode({'version': found.version.version})}",
            "line_count": None,
            "cut": False,
        },
        "all_files_href": skill_href(found.skill.slug, "files") + found.exact,
        "file_findings": [
            {"line": finding.get("line"), "title": _title(finding, visible(path))} for finding in findings
        ],
        "lines": None,
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
    if path.lower().endswith(_MARKDOWN):
        context["rendered"] = rendered(found, path, text)
    flagged = {finding["line"] for finding in findings if finding.get("line")}
    lines = text.removesuffix("\n").split("\n") if text else []
    # A line end at the end of a file gives one line too many in the parts.
    parts_of_lines = (colouring.lines(path, text) or [[(line, "")] for line in lines])[: len(lines)]
    context["file"]["line_count"] = len(lines)
    context["file"]["cut"] = len(lines) > MOST_LINES
    context["lines"] = [
        {"number": number, "html": in_colours(parts), "flagged": number in flagged}
        for number, parts in enumerate(parts_of_lines[:MOST_LINES], start=1)
    ]
    return context


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
