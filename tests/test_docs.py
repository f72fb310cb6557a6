"""The documents: links lead somewhere, and the glossary has each word once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parent.parent
DOCUMENTS: Final = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
_LINK: Final = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")


def glossary() -> list[tuple[str, str]]:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    return re.findall(r"^\* \*\*(.+?)\*\*: (.+)$", text, re.MULTILINE)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_files(document: Path) -> None:
    links = _LINK.findall(document.read_text(encoding="utf-8"))
    assert [link for link in links if not (document.parent / link).exists()] == []


def test_the_glossary_has_each_word_once_in_the_order_of_the_alphabet() -> None:
    words = [word for word, _meaning in glossary()]
    assert len(words) > 30
    assert words == sorted(set(words))


def test_each_word_of_the_glossary_has_one_line() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    assert len(glossary()) == text.count("\n* ")
    assert [word for word, meaning in glossary() if not meaning.endswith(".")] == []


@pytest.mark.parametrize("name", ["glossary.md", "states.md"])
def test_contributors_are_led_to_it(name: str) -> None:
    assert f"(docs/{name})" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
