"""Texts are whole on a phone, and stand in the fonts that they are meant for."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest

from tests.browser.chromium import PHONE, Browser
from tests.browser.test_pages_in_browser import PAGES

pytestmark = [pytest.mark.browser, pytest.mark.slow]

# Typed into its field, a placeholder makes it scroll where it does not fit.
CUT = """[...document.querySelectorAll('input[placeholder]')].filter(one => {
  if (!one.checkVisibility()) return false;
  one.value = one.placeholder;
  return one.scrollWidth > one.clientWidth;
}).map(one => one.placeholder)"""
WIDTHS_OF_LETTERS = """['h1', 'code'].map(name => {
  const one = document.querySelector(`main ${name}`);
  const range = document.createRange();
  range.selectNodeContents(one);
  return [getComputedStyle(one).fontFamily, one.textContent, range.getBoundingClientRect().width];
})"""


# The example of an address is longer than the narrowest phone is wide, and ends in an ellipsis there.
@pytest.mark.parametrize(("name", "narrowest"), [("home", 320), ("list", 320), ("skill", 320), ("submit", PHONE)])
def test_what_a_field_asks_for_is_whole_on_a_phone(browser: Browser, name: str, narrowest: int) -> None:
    for width in (narrowest, PHONE):
        browser.open(PAGES[name], width=width)
        assert browser.ask("document.querySelectorAll('input[placeholder]').length") > 0
        assert browser.ask(CUT) == [], width


def test_what_a_skill_asks_for_is_explained_in_lines_of_a_readable_length(browser: Browser) -> None:
    for width in (320, PHONE, 768):
        browser.open(PAGES["verdicts"], width=width)
        room = "[...document.querySelectorAll('.asks dd')].map(one => one.clientWidth)"
        assert min(browser.ask(room)) > 200, width


def test_a_font_for_chinese_changes_no_latin_letter(browser: Browser) -> None:
    """A font of the system's stands in for one that has Chinese letters, under its name: both have Latin ones."""
    browser.open("/skills/release-notes")
    before = browser.ask(WIDTHS_OF_LETTERS)
    assert all("WenQuanYi Micro Hei" in family for family, _text, _width in before)
    script = """
      const [bytes, done] = arguments;
      new FontFace('WenQuanYi Micro Hei', Uint8Array.from(atob(bytes), one => one.charCodeAt(0)).buffer).load()
        .then(font => { document.fonts.add(font); return document.fonts.ready; }).then(() => done(true));
    """
    for family in ("sans-serif", "monospace"):
        match = ["fc-match", "--format=%{file}", family]
        file = subprocess.run(match, capture_output=True, text=True, check=True).stdout
        assert browser.driver.execute_async_script(script, base64.b64encode(Path(file).read_bytes()).decode())
        assert browser.ask(WIDTHS_OF_LETTERS) == before, family
