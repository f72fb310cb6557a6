"""Render SKILL.md and other Markdown as HTML: without embedded HTML, sanitised with an allow list, at a bounded cost.

The text is hostile. It gets no HTML of its own, no images but the skill's own, and no links but http, https, mailto and
those that ``TextLinks`` makes. The ids of its headings have a prefix. Hidden characters are shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote, unquote, urlsplit

import nh3
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

from marketplace.pages.anchors import PREFIX, find_anchor, give_ids
from marketplace.pages.text_links import NOWHERE, Target, TextLinks
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
        "img",
        "li",
        "ol",
        "p",
        "pre",
        "s",
        "span",
        "strong",
    ),
    *("table", "tbody", "td", "th", "thead", "tr", "ul"),
}
_ATTRIBUTES: Final = {
    "a": {"href"},
    "ol": {"start"},
    "img": {"src", "alt", "loading"},
    "span": {"title"},
    **{heading: {"id"} for heading in ("h3", "h4", "h5", "h6")},
}
_SCHEMES: Final = {"http", "https", "mailto"}


def strip_front_matter(text: str) -> str:
    """Return the text of a SKILL.md without its front matter."""
    return _FRONT_MATTER.sub("", text, count=1)


def render_markdown(text: str, links: TextLinks | None = None) -> SafeString:
    """Return a Markdown text as safe HTML, without its front matter.

    ``links`` tells where relative links and images lead. Without it, and where they lead nowhere, they become plain
    text. Headings start at level three, and links to them work.
    """
    body = strip_front_matter(text[: 2 * MAX_CHARACTERS])
    shown = body[:MAX_CHARACTERS].replace("\0", "\N{REPLACEMENT CHARACTER}")
    shown = reveal_hidden(shown)[:MAX_CHARACTERS]
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "maxNesting": 20}).enable("strikethrough")
    if all(line.count("|") <= MAX_COLUMNS for line in shown.splitlines()):
        parser.enable("table")
    environment: dict[str, object] = {}
    tokens = parser.parse(shown, environment)
    _Rewriter(links, give_ids(tokens)).rewrite(tokens)
    html = parser.renderer.render(tokens, parser.options, environment)
    clean = nh3.clean(
        html,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        # They scroll by themselves where they are wide, which has to be possible by keyboard.
        set_tag_attribute_values={"pre": {"tabindex": "0"}, "table": {"tabindex": "0"}},
        url_schemes=_SCHEMES,
        link_rel="nofollow noopener ugc",
        strip_comments=True,
        id_prefix=PREFIX,
    )
    if len(body) > MAX_CHARACTERS:
        name = "SKILL.md" if links is None else escape(links.path)
        clean += f"<p><em>The text goes on; the rest of it is in the file {name}.</em></p>"
    return mark_safe(clean)  # noqa: S308 - nh3 has just cleaned it


class _Rewriter:
    """Rewrites the links, images and headings of a parsed text in place."""

    def __init__(self, links: TextLinks | None, ids: frozenset[str]) -> None:
        self._links = links
        self._ids = ids
        self._budget = MAX_HREFS_TOGETHER

    def rewrite(self, tokens: Iterable[Token]) -> None:
        for token in tokens:
            if token.type in ("heading_open", "heading_close"):
                token.tag = f"h{min(6, int(token.tag[1:]) + _HEADING_OFFSET)}"
            if token.children:
                token.children = list(self._inline(token.children))

    def _inline(self, tokens: Iterable[Token]) -> Iterator[Token]:
        # A link without an address becomes plain text, or a span that says where it would lead. Links do not nest.
        tag = ""
        for token in tokens:
            if token.type == "image":
                yield from self._image(token, in_link=tag == "a")
            elif token.type == "link_open":
                target = self._target(str(token.attrs.get("href", "")))
                tag = "a" if target.href else "span"
                token.tag = tag
                token.attrs = {"href": target.href} if target.href else {"title": target.title} if target.title else {}
                yield token
            elif token.type == "link_close":
                token.tag, tag = tag, ""
                yield token
            else:
                yield token

    def _image(self, token: Token, *, in_link: bool) -> Iterator[Token]:
        address = str(token.attrs.get("src", ""))
        path = _relative_path(address)
        source = self._links.image(path) if self._links is not None and path else ""
        if source and self._afford(source):
            yield Token("image", "img", 0, attrs={"src": source, "alt": "", "loading": "lazy"}, children=token.children)
            return
        text = Token("text", "", 0, content=_image_text(token))
        target = NOWHERE if in_link or not path else self._target(address)
        if not target.href:
            yield text
            return
        yield Token("link_open", "a", 1, attrs={"href": target.href})
        yield text
        yield Token("link_close", "a", -1)

    def _target(self, address: str) -> Target:
        target = self._resolved(address) if len(address) <= MAX_HREF else NOWHERE
        return target if self._afford(target.href or target.title) else NOWHERE

    def _afford(self, text: str) -> bool:
        if len(text) > MAX_HREF or self._budget < len(text):
            return False
        self._budget -= len(text)
        return True

    def _resolved(self, address: str) -> Target:
        try:
            parts = urlsplit(address)
        except ValueError:
            return NOWHERE
        if parts.scheme:
            return Target(address) if parts.scheme.lower() in _SCHEMES else NOWHERE
        if parts.netloc:
            return NOWHERE
        fragment = unquote(parts.fragment)
        if not parts.path:
            found = find_anchor(fragment, self._ids)
            return Target(f"#{PREFIX}{quote(found)}") if found else NOWHERE
        path = _relative_path(address)
        return self._links.link(path, fragment) if self._links is not None and path else NOWHERE


def _relative_path(address: str) -> str:
    """Return the decoded path of an address without scheme and host; empty for any other."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    path = unquote(parts.path)
    # A path that begins with two slashes is a host for a browser.
    return "" if parts.scheme or parts.netloc or path.startswith("//") or "\\" in path else path


def _image_text(token: Token) -> str:
    address = unquote(str(token.attrs.get("src", "")), errors="replace")
    if len(address) > _IMAGE_ADDRESS_SHOWN:
        address = f"{address[:_IMAGE_ADDRESS_SHOWN]}…"
    return f"[Image: {token.content} ({address})]" if token.content else f"[Image: {address}]"
