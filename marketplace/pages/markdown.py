"""Render SKILL.md as HTML: Markdown without embedded HTML, sanitised with an allow list, at a bounded cost.

The text is hostile. It gets no HTML of its own, no images, and no links but http, https, mailto and files of the same
version. Hidden characters are shown.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final
from urllib.parse import unquote, urlsplit

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

from vskill.hidden_characters import reveal_hidden

# Text beyond it is left out with a note, because on hostile input parsing takes more than linear time.
MAX_CHARACTERS: Final = 64 * 1024
# Every row of a table gets all columns in the HTML, however short its line is.
MAX_COLUMNS: Final = 60
# Thousands of reference links can share one long URL, and each repeats it in the HTML.
MAX_HREF: Final = 2000
MAX_HREFS_TOGETHER: Final = 200_000
_IMAGE_ADDRESS_SHOWN: Final = 120
_HEADING_OFFSET: Final = 2

_FRONT_MATTER: Final = re.compile(r"\A\ufeff?---[ \t]*\r?\n.*?^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_TAGS: Final = {
    *(
        "a",
        "blockquote",
        "br",
        "code",
        "del",
        "em",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "li",
        "ol",
        "p",
        "pre",
        "s",
        "strong",
    ),
    *("table", "tbody", "td", "th", "thead", "tr", "ul"),
}
_ATTRIBUTES: Final = {"a": {"href"}, "ol": {"start"}}
_SCHEMES: Final = {"http", "https", "mailto"}

FileHref = Callable[[str], str]


def strip_front_matter(text: str) -> str:
    """Return the text of a SKILL.md without its front matter."""
    return _FRONT_MATTER.sub("", text, count=1)


def render_skill_md(text: str, file_href: FileHref | None = None) -> SafeString:
    """Return the body of a SKILL.md as safe HTML.

    ``file_href`` returns the link to a file of the same version by its path, or an empty string where there is no such
    file. Without it, relative links become plain text. Headings start at level three.
    """
    body = strip_front_matter(text[: 2 * MAX_CHARACTERS])
    shown = body[:MAX_CHARACTERS].replace("\0", "\N{REPLACEMENT CHARACTER}")
    shown = reveal_hidden(shown)[:MAX_CHARACTERS]
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "maxNesting": 20}).enable("strikethrough")
    if all(line.count("|") <= MAX_COLUMNS for line in shown.splitlines()):
        parser.enable("table")
    environment: dict[str, object] = {}
    tokens = parser.parse(shown, environment)
    _Rewriter(file_href).rewrite(tokens)
    html = parser.renderer.render(tokens, parser.options, environment)
    clean = nh3.clean(
        html,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes=_SCHEMES,
        link_rel="nofollow noopener ugc",
        strip_comments=True,
    )
    if len(body) > MAX_CHARACTERS:
        clean += "<p><em>The text goes on; the rest of it is in the file SKILL.md.</em></p>"
    return mark_safe(clean)  # noqa: S308 - nh3 has just cleaned it


class _Rewriter:
    """Rewrites the links, images and headings of a parsed text in place."""

    def __init__(self, file_href: FileHref | None) -> None:
        self._file_href = file_href
        self._budget = MAX_HREFS_TOGETHER

    def rewrite(self, tokens: Iterable[Token]) -> None:
        for token in tokens:
            if token.type in ("heading_open", "heading_close"):
                token.tag = f"h{min(6, int(token.tag[1:]) + _HEADING_OFFSET)}"
            if token.children:
                token.children = list(self._inline(token.children))

    def _inline(self, tokens: Iterable[Token]) -> Iterator[Token]:
        for token in tokens:
            if token.type == "image":
                yield Token("text", "", 0, content=_image_text(token))
                continue
            if token.type == "link_open":
                href = self._href(str(token.attrs.get("href", "")))
                token.attrs = {"href": href} if href else {}
            yield token

    def _href(self, href: str) -> str:
        if len(href) > MAX_HREF or self._budget < len(href):
            return ""
        self._budget -= len(href)
        try:
            parts = urlsplit(href)
        except ValueError:
            return ""
        if parts.scheme:
            return href if parts.scheme.lower() in _SCHEMES else ""
        if parts.netloc or parts.path.startswith("/") or not parts.path or self._file_href is None:
            return ""
        path = posixpath.normpath(unquote(parts.path))
        if path.startswith("..") or path == "." or not path.isprintable() or "\\" in path:
            return ""
        return self._file_href(path)


def _image_text(token: Token) -> str:
    address = unquote(str(token.attrs.get("src", "")), errors="replace")
    if len(address) > _IMAGE_ADDRESS_SHOWN:
        address = f"{address[:_IMAGE_ADDRESS_SHOWN]}…"
    return f"[Image: {token.content} ({address})]" if token.content else f"[Image: {address}]"
