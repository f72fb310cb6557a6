"""What a person hears of, chosen in a real browser: its width, and the form without a mouse."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.browser.chromium import DESKTOP, PHONE, Browser
from tests.browser.populate import PASSWORD, REVIEWER

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PAGE = "/account/notifications"


def test_a_feed_is_chosen_by_keys_and_the_page_fits_every_width(browser: Browser) -> None:
    browser.open(f"/sign-in?next={PAGE}")
    if browser.driver.find_elements(By.NAME, "password"):
        browser.driver.find_element(By.NAME, "username").send_keys(REVIEWER)
        with browser.leaving():
            browser.driver.find_element(By.NAME, "password").send_keys(PASSWORD, Keys.ENTER)
    browser.open(PAGE)
    browser.driver.find_element(By.CSS_SELECTOR, "input[name=way][value=feed]").send_keys(Keys.SPACE)
    with browser.leaving():
        browser.driver.find_element(By.CSS_SELECTOR, "button[value=add]").send_keys(Keys.ENTER)
    assert "what you submitted" in browser.driver.find_element(By.TAG_NAME, "main").text
    for width in (320, PHONE, DESKTOP):
        browser.open(PAGE, width=width)
        assert browser.too_wide() == [], width
    assert browser.complaints() == []
