"""What a person hears of, chosen in a real browser: its width, and the form without a mouse."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.browser.chromium import DESKTOP, PHONE, Browser
from tests.browser.populate import PASSWORD, REVIEWER
from tests.browser.test_accessibility import AT_REST, AXE, faults

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PAGE = "/account/notifications"


def sign_in(browser: Browser) -> None:
    browser.open(f"/sign-in?next={PAGE}")
    if browser.driver.find_elements(By.NAME, "password"):
        browser.driver.find_element(By.NAME, "username").send_keys(REVIEWER)
        with browser.leaving():
            browser.driver.find_element(By.NAME, "password").send_keys(PASSWORD, Keys.ENTER)
    browser.open(PAGE)


def press(browser: Browser, value: str) -> None:
    """Press a button by keys alone, and wait for the page that it leads to."""
    with browser.leaving():
        browser.driver.find_element(By.CSS_SELECTOR, f"button[value={value}]").send_keys(Keys.ENTER)


def test_a_feed_is_chosen_by_keys_and_the_page_fits_every_width(browser: Browser) -> None:
    sign_in(browser)
    browser.driver.find_element(By.CSS_SELECTOR, "input[name=way][value=feed]").send_keys(Keys.SPACE)
    press(browser, "add")
    assert "what you submitted" in browser.driver.find_element(By.TAG_NAME, "main").text
    for width in (320, PHONE, DESKTOP):
        browser.open(PAGE, width=width)
        assert browser.too_wide() == [], width
    assert browser.complaints() == []


def test_a_webhook_gets_a_new_secret_by_keys_and_its_window_is_told_and_ended(browser: Browser) -> None:
    sign_in(browser)
    browser.driver.find_element(By.CSS_SELECTOR, "input[name=way][value=webhook]").send_keys(Keys.SPACE)
    browser.driver.find_element(By.NAME, "url").send_keys("https://hooks.example.org/" + "long/" * 20)
    press(browser, "add")
    first = browser.ask("document.getElementById('secret-made').textContent")
    press(browser, "rotate")
    second = browser.ask("document.getElementById('secret-made').textContent")
    assert first != second
    assert {one.strip()[:6] for one in (first, second)} == {"whsec_"}
    for width in (320, PHONE, DESKTOP):
        browser.resize(width, 900)
        assert browser.too_wide() == [], width
    for scheme in ("light", "dark"):
        browser.colours(scheme, at_once=True)
        browser.until(f"matchMedia('(prefers-color-scheme: {scheme})').matches && {AT_REST}")
        if AXE.exists():
            assert faults(browser) == [], scheme
    assert "signs too until" in browser.driver.find_element(By.TAG_NAME, "main").text
    press(browser, "end-earlier")
    assert "signs too until" not in browser.driver.find_element(By.TAG_NAME, "main").text
    assert browser.complaints() == []
