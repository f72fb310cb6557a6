"""The pages of an account in a real browser: the name in the header, at every width."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.browser.chromium import Browser
from tests.browser.populate import MEMBER, PASSWORD
from tests.browser.test_pages_in_browser import WIDTHS

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def sign_in(browser: Browser, password: str = PASSWORD) -> None:
    """Sign in as a member with a long name."""
    browser.open("/sign-in?next=/account")
    browser.driver.find_element(By.NAME, "username").send_keys(MEMBER)
    with browser.leaving():
        browser.driver.find_element(By.NAME, "password").send_keys(password, Keys.ENTER)


@pytest.fixture
def member(browser: Browser) -> Iterator[Browser]:
    """Return the browser with a member signed in, who is signed out again after the test."""
    browser.driver.delete_all_cookies()
    sign_in(browser)
    yield browser
    browser.driver.delete_all_cookies()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_long_name_is_on_the_line_of_the_other_links_and_shortened(member: Browser, scheme: str) -> None:
    member.colours(scheme)
    for width in WIDTHS:
        member.open("/skills", width=width)
        assert member.too_wide() == [], width
        tops = member.ask(
            "[...document.querySelectorAll('.site-nav li')].map(one => Math.round(one.getBoundingClientRect().top))"
        )
        assert len(tops) == 5
        assert len(set(tops)) == 1, width
        # Something of it is to be read, and all of it by a reader of screens.
        name = "document.querySelector('.site-account span')"
        assert member.ask(f"{name}.getBoundingClientRect().width") > 20
        assert member.ask(f"{name}.scrollWidth > {name}.clientWidth")
        assert member.ask(f"{name}.textContent") == MEMBER
    assert member.complaints() == []


def test_what_leads_a_stranger_to_the_sign_in_is_on_that_line_whole(member: Browser) -> None:
    member.open("/skills", width=320)
    # As it is where the registry offers a sign-in, which this one does not to strangers.
    member.driver.execute_script(
        "document.querySelector('.site-account').outerHTML = '<li><a href=\"/sign-in\">Sign in</a></li>'"
    )
    tops = member.ask("[...document.querySelectorAll('.site-nav li')].map(one => one.getBoundingClientRect().top)")
    assert len(set(tops)) == 1
    assert member.too_wide() == []
