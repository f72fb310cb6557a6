"""Debian's chromium with its own driver; nothing is downloaded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from selenium.common.exceptions import WebDriverException
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

CHROMIUM: Final = Path("/usr/bin/chromium")
CHROMEDRIVER: Final = Path("/usr/bin/chromedriver")
PHONE: Final = 380
DESKTOP: Final = 1280
# An A4 sheet within the margins that chromium leaves.
SHEET: Final = 718
LOST_ON_PAPER: Final = """[...document.querySelectorAll('body *')].filter(one => {
  const box = one.getBoundingClientRect();
  const style = getComputedStyle(one);
  if (one.matches('.picture summary + *')) return !one.checkVisibility();
  if (one.closest('.sr-only, svg') || !one.checkVisibility() || !box.width || !box.height) return false;
  if (box.right > document.documentElement.clientWidth + 1) return true;
  if (one.matches('button, .button, [role=search], [role=search] *, .tabs > input')) return true;
  // A list says by its dots that a description goes on.
  if (one.matches('.clamp')) return false;
  if (one.matches('td, th') && one.scrollWidth > one.clientWidth + 1) return true;
  return (style.overflowX !== 'visible' && one.scrollWidth > one.clientWidth + 1)
    || (style.overflowY !== 'visible' && one.scrollHeight > one.clientHeight + 1);
}).map(one => one.outerHTML.slice(0, 120))"""


def why_not() -> str | None:
    """Return why no browser can be used here, or ``None`` if one can."""
    absent = [str(path) for path in (CHROMIUM, CHROMEDRIVER) if not path.exists()]
    return f"{' and '.join(absent)} not installed (Debian: chromium chromium-driver)" if absent else None


class Browser:
    """One chromium, with the operations that tests need."""

    def __init__(self, driver: Chrome, base: str) -> None:
        """Wrap ``driver``; paths are opened below the URL ``base``."""
        self.driver = driver
        self.base = base
        self.scheme = "light"

    def open(self, path: str, *, width: int = DESKTOP) -> None:
        """Open a page of the server in a window ``width`` CSS pixels wide."""
        self.resize(width, 900)
        self.driver.get(self.base + path)

    def resize(self, width: int, height: int) -> None:
        """Set the size of the viewport in CSS pixels; widths below 500 emulate a phone."""
        self._command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )

    def colours(self, scheme: str, *, at_once: bool = False) -> None:
        """Emulate the preference for ``light`` or ``dark`` colours, and with ``at_once`` that for no transitions."""
        self.scheme = scheme
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce" if at_once else "no-preference"},
        ]
        self._command("Emulation.setEmulatedMedia", media="", features=features)

    @contextmanager
    def on_paper(self, scheme: str = "light") -> Iterator[None]:
        """Lay the open page out as for a sheet of paper during the body, on a screen with ``scheme`` colours."""
        self.resize(SHEET, 1000)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._command("Emulation.setEmulatedMedia", media="print", features=features)
        try:
            yield
        finally:
            self.colours(self.scheme)

    def lost_on_paper(self) -> list[str]:
        """Return the elements that paper cuts off or closes, and the controls that nobody can use there."""
        return list(self.ask(LOST_ON_PAPER))

    @contextmanager
    def without_scripts(self) -> Iterator[None]:
        """Disable scripts in all pages that are opened during the body."""
        self._command("Emulation.setScriptExecutionDisabled", value=True)
        try:
            yield
        finally:
            self._command("Emulation.setScriptExecutionDisabled", value=False)

    @contextmanager
    def unreachable(self, pattern: str) -> Iterator[None]:
        """Let requests to addresses that ``pattern`` (with ``*``) describes fail in the network during the body."""
        self._command("Network.setBlockedURLs", urls=[pattern])
        try:
            yield
        finally:
            self._command("Network.setBlockedURLs", urls=[])

    @contextmanager
    def hurried(self) -> Iterator[None]:
        """Let the timers of pages that are opened during the body go off ten times as early."""
        script = "const wait = setTimeout; setTimeout = (work, time, ...rest) => wait(work, time / 10, ...rest);"
        added = self.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})
        try:
            yield
        finally:
            self._command("Page.removeScriptToEvaluateOnNewDocument", identifier=added["identifier"])

    def ask(self, expression: str) -> Any:
        """Return the value of a JavaScript expression in the page."""
        return self.driver.execute_script(f"return ({expression})")

    def until(self, expression: str, *, seconds: float = 15) -> None:
        """Wait until a JavaScript expression is true; fail after ``seconds``."""
        WebDriverWait(self.driver, seconds, poll_frequency=0.05).until(lambda _driver: self.ask(expression), expression)

    @contextmanager
    def leaving(self) -> Iterator[None]:
        """Wait after the body, which leads to another page, until that page is loaded: key presses do not wait."""
        left = self.ask("performance.timeOrigin")
        yield
        # Between the two pages, the driver answers with an error of its own.
        following = WebDriverWait(self.driver, 15, poll_frequency=0.05, ignored_exceptions=[WebDriverException])
        following.until(
            lambda _driver: self.ask(f"performance.timeOrigin !== {left} && document.readyState === 'complete'")
        )

    def allow_clipboard(self, origin: str) -> None:
        """Allow pages of ``origin`` to read and write the clipboard without a prompt."""
        permissions = ["clipboardReadWrite", "clipboardSanitizedWrite"]
        self._command("Browser.grantPermissions", origin=origin, permissions=permissions)

    def too_wide(self) -> list[str]:
        """Return the elements that make the page scroll sideways; boxes with their own scrollbar may."""
        if self.ask("document.documentElement.scrollWidth <= document.documentElement.clientWidth"):
            return []
        found = self.ask(
            "[...document.querySelectorAll('body *')]"
            ".filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)"
            ".map(e => e.outerHTML.slice(0, 120))"
        )
        return list(found) or ["the page, by no single element"]

    def complaints(self) -> list[str]:
        """Return the new console messages: errors of scripts and violations of the content security policy."""
        entries: list[dict[str, Any]] = self.driver.get_log("browser")  # type: ignore[no-untyped-call]  # selenium's
        return [str(entry["message"]) for entry in entries if entry["level"] in {"SEVERE", "WARNING"}]

    def hosts_asked(self) -> set[str]:
        """Return the hosts that pages have sent requests to since the last call."""
        entries: list[dict[str, Any]] = self.driver.get_log("performance")  # type: ignore[no-untyped-call]  # selenium's
        messages = (json.loads(entry["message"])["message"] for entry in entries)
        urls = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
        return {urlsplit(url).netloc for url in urls if urlsplit(url).scheme in {"http", "https", "ws", "wss"}}

    def screenshot(self, path: Path, *, tallest: int = 1800) -> None:
        """Write the whole page as PNG, up to ``tallest`` CSS pixels high."""
        width = self.ask("innerWidth")
        self.resize(width, min(self.ask("document.documentElement.scrollHeight"), tallest))
        self.driver.save_screenshot(str(path))

    def _command(self, name: str, **arguments: Any) -> None:
        self.driver.execute_cdp_cmd(name, arguments)


@contextmanager
def open_browser(base: str) -> Iterator[Browser]:
    """Start a headless chromium and end it afterwards."""
    options = ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for argument in (
        "--headless=new",
        "--no-sandbox",  # the tests may run as root, which chromium's sandbox refuses; it opens our own pages alone
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--hide-scrollbars",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options=options, service=Service(str(CHROMEDRIVER)))
    try:
        yield Browser(driver, base)
    finally:
        driver.quit()
