"""The design system, read from its files: contrast, and nothing that the content security policy would refuse."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from django.contrib.staticfiles import finders
from django.template.loader import render_to_string

from vskill.templatetags.icons import DRAWINGS

ROOT: Final = Path(__file__).resolve().parent.parent.parent
STYLES: Final = ROOT / "vskill" / "static" / "vskill"
TEMPLATES: Final = sorted(ROOT.glob("*/templates/**/*.html"))
TEXT: Final = 4.5
EDGE: Final = 3.0

# (what is drawn, what it is drawn on, the ratio that WCAG 2.2 AA asks for)
PAIRS: Final = [
    *(
        (ink, ground, TEXT)
        for ink in ("ink", "ink-soft", "ink-faint", "accent")
        for ground in ("paper", "surface", "sunken")
    ),
    ("ink-soft", "idle-soft", TEXT),
    ("ink-soft", "accent-soft", TEXT),
    ("ink-faint", "accent-soft", TEXT),
    ("accent", "accent-soft", TEXT),
    ("accent-strong", "surface", TEXT),
    ("on-accent", "accent", TEXT),
    ("on-accent", "accent-strong", TEXT),
    ("ink", "mark", TEXT),
    ("ink", "hold-soft", TEXT),
    ("ink-faint", "hold-soft", TEXT),
    ("bad", "surface", TEXT),
    *((ink, ground, TEXT) for ink in ("ink", "ink-soft") for ground in ("good-soft", "bad-soft")),
    *((tone, f"{tone}-soft", TEXT) for tone in ("good", "note", "hold", "bad", "idle")),
    *((edge, ground, EDGE) for edge in ("line-firm", "focus") for ground in ("paper", "surface", "sunken")),
]


def tokens(scheme: str) -> dict[str, str]:
    light, _, dark = (STYLES / "tokens.css").read_text().partition("@media (prefers-color-scheme: dark)")
    read = dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{6});", light))
    return read | dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{6});", dark)) if scheme == "dark" else read


def luminance(colour: str) -> float:
    channels = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def test_the_contrast_formula_gives_the_known_extremes() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_edges_stand_out_from_what_they_are_on(scheme: str) -> None:
    known = tokens(scheme)
    ratios = {(ink, ground): (contrast(known[ink], known[ground]), wanted) for ink, ground, wanted in PAIRS}
    assert {pair: round(ratio, 2) for pair, (ratio, wanted) in ratios.items() if ratio < wanted} == {}


def test_dark_redefines_every_colour_of_light() -> None:
    _, _, dark = (STYLES / "tokens.css").read_text().partition("@media (prefers-color-scheme: dark)")
    assert set(tokens("light")) - set(re.findall(r"--([\w-]+):", dark)) == set()


def test_styles_use_no_token_that_does_not_exist() -> None:
    defined = set(re.findall(r"^\s*--([\w-]+):", (STYLES / "tokens.css").read_text(), re.MULTILINE))
    # admin.css gives other values to Django's own variables.
    sheets = [path for path in STYLES.glob("*.css") if path.name != "admin.css"]
    used = {name for path in sheets for name in re.findall(r"var\(--([\w-]+)", path.read_text())}
    assert used - defined == set()


def test_styles_and_scripts_ask_no_other_host() -> None:
    asking = re.compile(r"""(?:url\(\s*['"]?|@import\s+['"]?|(?:src|href)=['"]?)\s*(?:https?:)?//""")
    files = [path for path in (ROOT / "vskill" / "static").rglob("*") if path.suffix in {".css", ".svg"}]
    assert files
    assert [path.name for path in files if asking.search(path.read_text())] == []


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_template_keeps_to_the_content_security_policy(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"<style\b|\sstyle\s*=", text), "style-src 'self' refuses inline styles"
    assert not re.search(r"<script(?![^>]*\ssrc=)", text), "script-src 'self' refuses inline scripts"
    assert not re.search(r"""\son\w+\s*=\s*["']|hx-on|javascript:""", text), (
        "script-src 'self' refuses event attributes"
    )
    assert not re.search(r"""(?:src|<link[^>]*href|action|hx-get)\s*=\s*["'](?:https?:)?//""", text), "another host"


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_template_names_icons_and_files_that_exist(path: Path) -> None:
    text = path.read_text()
    assert set(re.findall(r'{% icon "([\w-]+)"', text)) - set(DRAWINGS) == set()
    assert [name for name in re.findall(r"{% static '([^']+)' %}", text) if finders.find(name) is None] == []


@pytest.mark.parametrize("code", ["400", "403", "403_csrf", "404", "429", "500", "503"])
def test_an_error_page_can_be_rendered_when_nothing_else_works(code: str) -> None:
    # Without a request, a database or a context: the page for a fault must not be one.
    shown = render_to_string(f"{code}.html")
    assert "<h1>" in shown
    assert code[:3] in shown


def test_an_error_page_says_what_happened_and_when_to_come_back() -> None:
    shown = render_to_string("503.html", {"message": "The <database> is away.", "retry_after": 90})
    assert "The &lt;database&gt; is away." in shown
    assert "1 min 30 s" in shown
