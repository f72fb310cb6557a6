"""Take the screenshots in docs/screenshots of the real product with its demo: ``make screenshots``.

Starts ``manage.py up`` on a temporary data directory, submits the demo, waits until the queue is empty, and opens the
pages.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from selenium.webdriver.common.by import By

from tests.browser.chromium import DESKTOP, PHONE, Browser, open_browser, why_not
from tests.browser.server import ROOT, free_port

TARGET: Final = ROOT / "docs" / "screenshots"
SKILL: Final = "csv-tidy"
WAITING = "#queue-live [aria-labelledby=waiting-title] tbody tr"
LIMIT_SECONDS: Final = 120.0


def no_letters() -> str | None:
    """Return why names of the demo would be empty boxes, or ``None`` if a font here has their letters."""
    fonts = subprocess.run(["fc-list", ":lang=zh-cn"], capture_output=True, text=True, check=True).stdout
    return None if fonts else "no font here has Chinese letters (Debian: fonts-wqy-microhei)"


def usual_port() -> int:
    """Return the default port of the product, or another one if it is in use."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", 8000))
        except OSError:
            return free_port()
    return 8000


@contextmanager
def running_product(folder: Path) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Start everything without the demo; yield its URL, the admin's password and its environment variables."""
    port = usual_port()
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("VSKILL_", "DATABASE_URL"))}
    variables |= {"VSKILL_DATA_DIR": str(folder), "HOST": "127.0.0.1", "PORT": str(port), "DEMO": "0", "NO_COLOR": "1"}
    command = [sys.executable, "manage.py", "up"]
    process = subprocess.Popen(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        password = ""
        for line in process.stdout:
            if found := re.search(r"user admin\s+password (\S+)", line):
                password = found[1]
            if "Ctrl-C" in line:
                break
        else:
            raise RuntimeError("vskill did not start; its messages are above.")
        yield f"http://127.0.0.1:{port}", password, variables
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)


def submissions(base: str) -> list[dict[str, Any]]:
    """Return the submissions, as the API lists them."""
    with urllib.request.urlopen(f"{base}/api/v1/submissions", timeout=30) as answer:  # noqa: S310 - our own address
        items: list[dict[str, Any]] = json.load(answer)["items"]
    return items


def shoot(browser: Browser, name: str, path: str = "", *, width: int = DESKTOP, tallest: int = 1100) -> None:
    """Open ``path``, if any, and write the page to a file that is named for ``name``, ``width`` and the colours.

    ``width`` and ``tallest``, the maximal height, are in CSS pixels.
    """
    if path:
        browser.open(path, width=width)
    browser.screenshot(TARGET / f"{name}-{width}-{browser.scheme}.png", tallest=tallest)


def shoot_the_queue_at_work(browser: Browser, variables: dict[str, str]) -> None:
    """Submit the demo while the page of the queue is open, and take the screenshot while messages wait."""

    def manage(*arguments: str) -> None:
        subprocess.run([sys.executable, "manage.py", *arguments], cwd=ROOT, env=variables, check=True)

    # Else the demo is worked off before the page is renewed.
    manage("pause", "A picture is taken.")
    manage("load_demo")
    browser.open("/queue")
    browser.until(f"document.querySelectorAll('{WAITING}').length > 2", seconds=LIMIT_SECONDS)
    manage("resume")
    shoot(browser, "queue", "/queue")
    browser.until(f"!document.querySelector('{WAITING}')", seconds=LIMIT_SECONDS)


def shoot_what_a_person_does(browser: Browser, variables: dict[str, str]) -> None:
    """List the skills of the demo repository with the form."""
    browser.open("/submit")
    repository = (Path(variables["VSKILL_DATA_DIR"]) / "demo" / "skills.git").as_uri()
    browser.driver.find_element(By.ID, "repository-url").send_keys(repository)
    browser.driver.find_element(By.CSS_SELECTOR, "main button[type=submit]").click()
    browser.until("document.querySelector('.choices')", seconds=LIMIT_SECONDS)
    shoot(browser, "submit")


def shoot_the_admin(browser: Browser, password: str) -> None:
    """Log in and show the submissions."""
    browser.open("/admin/login/?next=/admin/submissions/submissionentry/")
    browser.driver.find_element(By.NAME, "username").send_keys("admin")
    browser.driver.find_element(By.NAME, "password").send_keys(password)
    browser.driver.find_element(By.CSS_SELECTOR, "input[type=submit]").click()
    browser.until("document.querySelector('#result_list')", seconds=LIMIT_SECONDS)
    shoot(browser, "admin", tallest=900)


def main() -> None:
    """Take all screenshots."""
    if (reason := why_not() or no_letters()) is not None:
        raise SystemExit(f"No screenshots were taken: {reason}.")
    TARGET.mkdir(parents=True, exist_ok=True)
    # A short path, because the pages show the address of the demo's repository.
    with tempfile.TemporaryDirectory(prefix="vskill-") as folder, running_product(Path(folder)) as running:
        base, password, variables = running
        with open_browser(base) as browser:
            shoot_the_queue_at_work(browser, variables)
            held = next(one["id"] for one in submissions(base) if one["state"] == "ON_HOLD")
            shoot(browser, "home", "/")
            shoot(browser, "list", "/skills")
            shoot(browser, "skill", f"/skills/{SKILL}", tallest=1300)
            shoot(browser, "submission", f"/submissions/{held}")
            shoot(browser, "home", "/", width=PHONE, tallest=1400)
            shoot(browser, "skill", f"/skills/{SKILL}", width=PHONE, tallest=1400)
            shoot_what_a_person_does(browser, variables)
            browser.colours("dark")
            shoot(browser, "skill", f"/skills/{SKILL}", tallest=1300)
            browser.colours("light")
            shoot_the_admin(browser, password)
    for path in sorted(TARGET.glob("*.png")):
        sys.stdout.write(f"{path.relative_to(ROOT)}  {path.stat().st_size // 1024} KB\n")


if __name__ == "__main__":
    main()
