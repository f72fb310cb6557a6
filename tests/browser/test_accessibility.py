"""No page has a serious fault of accessibility that axe-core finds: wide and light, narrow and dark."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from tests.browser.chromium import Browser
from tests.browser.server import ROOT, Server
from tests.browser.test_pages_in_browser import ERRORS, PAGES, WIDTHS

pytestmark = [pytest.mark.browser, pytest.mark.slow]

AXE: Final = Path(ROOT / "tests" / "clients" / "node_modules" / "axe-core" / "axe.min.js")
SERIOUS: Final = {"serious", "critical"}
AT_REST: Final = "!document.getAnimations().some(one => one instanceof CSSTransition)"
MORE_PAGES: Final = {
    "all files": "/skills/release-notes/files",
    "card": "/skills/release-notes/card",
    "sign in": "/sign-in",
    "forgotten password": "/sign-in/forgotten",
    **ERRORS,
}


def faults(browser: Browser) -> list[str]:
    """Return what axe finds in the open page that is serious or worse, each with the first elements concerned."""
    browser.driver.execute_script(AXE.read_text(encoding="utf-8"))
    found: dict[str, Any] = browser.driver.execute_async_script(
        # What passes is not collected, which takes as long as to look for faults.
        "const done = arguments[0]; const asked = {resultTypes: ['violations']};"
        "axe.run(document, asked).then(done, error => done({error: String(error)}))"
    )
    assert "error" not in found, found
    return [
        f"{one['id']}: {one['help']}: {[node['html'][:160] for node in one['nodes'][:3]]}"
        for one in found["violations"]
        if one["impact"] in SERIOUS
    ]


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed (make clients)")
def test_axe_finds_nothing_serious_on_any_page(browser: Browser, server: Server) -> None:
    seen = {}
    for name, path in {**PAGES, **MORE_PAGES, **server.submissions}.items():
        # Links change their colour within a moment, and axe would see one on its way.
        browser.colours("light", at_once=True)
        browser.open(path, width=WIDTHS[-1])
        light = faults(browser)
        browser.resize(WIDTHS[0], 900)
        browser.colours("dark", at_once=True)
        browser.until(f"matchMedia('(prefers-color-scheme: dark)').matches && {AT_REST}")
        seen[name] = light + [f"dark and narrow: {one}" for one in faults(browser)]
    assert {name: found for name, found in seen.items() if found} == {}


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed (make clients)")
def test_axe_would_find_a_fault(browser: Browser) -> None:
    browser.open("/about/verification")
    browser.driver.execute_script("document.querySelector('main').innerHTML += '<img src=\"/favicon.ico\">'")
    assert [one.partition(":")[0] for one in faults(browser)] == ["image-alt"]
