"""The text of a page as a browser shows it."""

from __future__ import annotations

import html
import re


def without_inline_tags(page: str) -> str:
    """Return a page without the tags that end no line in it, and with the characters that entities stand for."""
    return html.unescape(re.sub(r"</?(?:span|wbr)\b[^>]*>", "", page))
