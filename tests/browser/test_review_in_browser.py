"""The review of held submissions in a real browser: its keys, its buttons without scripts, its width."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from tests.browser.chromium import DESKTOP, PHONE, Browser
from tests.browser.populate import PASSWORD, REVIEWER
from tests.browser.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LIST = "/admin/submissions/heldsubmission/"


@pytest.fixture
def reviewer(browser: Browser) -> Browser:
    browser.open(f"/admin/login/?next={LIST}")
    if browser.driver.find_elements(By.NAME, "password"):
        browser.driver.find_element(By.NAME, "username").send_keys(REVIEWER)
        browser.driver.find_element(By.NAME, "password").send_keys(PASSWORD)
        with browser.leaving():
            browser.driver.find_element(By.CSS_SELECTOR, "input[type=submit]").click()
    browser.open(LIST)
    browser.complaints()
    return browser


def press(browser: Browser, key: str, *, leaves: bool = True) -> None:
    body = browser.driver.find_element(By.TAG_NAME, "body")
    if not leaves:
        body.send_keys(key)
        return
    with browser.leaving():
        body.send_keys(key)


def title(browser: Browser) -> str:
    return browser.driver.find_element(By.CSS_SELECTOR, "#content h1").text


def open_first(browser: Browser) -> None:
    browser.open(LIST)
    with browser.leaving():
        browser.driver.find_element(By.CSS_SELECTOR, "#result_list .field-skill a").click()


def test_the_review_fits_every_width_in_light_and_dark(reviewer: Browser) -> None:
    open_first(reviewer)
    page = reviewer.ask("location.pathname")
    for path in (LIST, str(page), f"{LIST}rules/"):
        for width in (PHONE, DESKTOP):
            for colours in ("light", "dark"):
                reviewer.colours(colours)
                reviewer.open(path, width=width)
                if folder := os.environ.get("REVIEW_SCREENSHOTS"):
                    name = path.strip("/").replace("/", "-")
                    reviewer.screenshot(Path(folder) / f"{name}-{width}-{colours}.png")
                if path != LIST:
                    assert reviewer.too_wide() == [], (path, width)
    assert reviewer.complaints() == []


def test_keys_lead_through_the_queue_decide_and_undo(reviewer: Browser) -> None:
    open_first(reviewer)
    assert title(reviewer) == "Review to-review-0"
    press(reviewer, "j")
    assert title(reviewer) == "Review to-review-1"
    press(reviewer, "k")
    assert title(reviewer) == "Review to-review-0"
    press(reviewer, "?", leaves=False)
    assert reviewer.ask("document.getElementById('review-help').open") is True
    # Without a reason a key decides nothing: it goes to the reason.
    press(reviewer, "r", leaves=False)
    assert reviewer.ask("document.activeElement.id") == "review-reason"
    reason = reviewer.driver.find_element(By.ID, "review-reason")
    # Letters of the reason are no keys.
    reason.send_keys("a bad ruling, by jury")
    assert title(reviewer) == "Review to-review-0"
    with reviewer.leaving():
        reason.send_keys(Keys.CONTROL, Keys.ENTER)
    assert title(reviewer) == "Review to-review-1"
    assert "review-0: refused." in reviewer.driver.find_element(By.CSS_SELECTOR, ".messagelist").text
    press(reviewer, "u")
    assert title(reviewer) == "Review to-review-0"
    assert "is held again" in reviewer.driver.page_source
    assert reviewer.complaints() == []


def test_without_scripts_the_buttons_do_the_same(reviewer: Browser, server: Server) -> None:
    with reviewer.without_scripts():
        open_first_without_scripts(reviewer)
        reviewer.driver.find_element(By.ID, "review-reason").send_keys("looked at it")
        reviewer.driver.find_element(By.CSS_SELECTOR, "button[value=reject]").click()
        # A click does not always wait until the page is another one, and without scripts the page cannot be asked.
        waiting = WebDriverWait(reviewer.driver, 15, poll_frequency=0.05, ignored_exceptions=[WebDriverException])
        waiting.until(lambda driver: driver.find_element(By.ID, "review-undo")).click()
        waiting.until(lambda driver: "is held again" in driver.page_source)


def open_first_without_scripts(browser: Browser) -> None:
    browser.open(LIST)
    browser.driver.find_element(By.CSS_SELECTOR, "#result_list .field-skill a").click()
