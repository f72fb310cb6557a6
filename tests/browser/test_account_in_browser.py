"""The pages of an account in a real browser: the name in the header, and the password, at every width."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.browser.chromium import Browser
from tests.browser.populate import MEMBER, PASSWORD
from tests.browser.server import Server
from tests.browser.test_accessibility import AT_REST, AXE, faults
from tests.browser.test_pages_in_browser import WIDTHS

pytestmark = [pytest.mark.browser, pytest.mark.slow]

NEW: Final = "another one of the browser tests"


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


@pytest.mark.parametrize("path", ["/account", "/account/password"])
def test_a_page_of_an_account_fits_every_width_and_has_no_serious_fault(member: Browser, path: str) -> None:
    for scheme in ("light", "dark"):
        member.colours(scheme, at_once=True)
        for width in WIDTHS:
            member.open(path, width=width)
            assert member.too_wide() == [], width
        member.until(f"matchMedia('(prefers-color-scheme: {scheme})').matches && {AT_REST}")
        if AXE.exists():
            assert faults(member) == [], scheme
    assert member.complaints() == []


@pytest.mark.parametrize("name", ["forgotten", "new password"])
def test_a_page_for_who_has_forgotten_a_password_fits_every_width(browser: Browser, server: Server, name: str) -> None:
    path = server.submissions.get(name, "/sign-in/forgotten")
    for width in WIDTHS:
        browser.open(path, width=width)
        assert browser.too_wide() == [], width
        assert browser.ask("document.querySelectorAll('form.sign-in-form input:not([type=hidden])').length") > 0
    assert browser.complaints() == []


def change(browser: Browser, *words: str) -> None:
    """Fill in the form for another password by keys alone, and send it."""
    browser.open("/account/password", width=380)
    fields = browser.driver.find_elements(By.CSS_SELECTOR, "main input[type=password]")
    for field, word in zip(fields, words, strict=True):
        field.send_keys(word)
    with browser.leaving():
        fields[-1].send_keys(Keys.ENTER)


def test_a_password_is_changed_by_keys_and_what_is_wrong_is_said_beside_its_field(member: Browser) -> None:
    change(member, "not this one", NEW, NEW)
    wrong = "document.querySelector('[aria-invalid=true]')"
    assert member.ask(f"{wrong}.name") == "old_password"
    said = member.ask(f"document.getElementById({wrong}.getAttribute('aria-describedby')).innerText")
    assert "entered incorrectly" in said
    assert member.too_wide() == []
    if AXE.exists():
        assert faults(member) == []
    change(member, PASSWORD, NEW, NEW)
    assert "Your password is changed" in member.driver.find_element(By.TAG_NAME, "main").text
    member.driver.delete_all_cookies()
    sign_in(member, NEW)
    assert member.driver.find_element(By.TAG_NAME, "h1").text == MEMBER
    # For the other tests of this process.
    change(member, NEW, PASSWORD, PASSWORD)
