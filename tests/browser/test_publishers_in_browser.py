"""Publishers of somebody in a real browser: every width, without a mouse, and nothing that is sent by mistake."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.browser.chromium import Browser
from tests.browser.populate import LONG_NAME, OWNER, PASSWORD
from tests.browser.test_accessibility import AT_REST, AXE, faults
from tests.browser.test_pages_in_browser import WIDTHS

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PAGE = "/account/publishers"
WITHDRAW = "/account/withdraw"
# More than any of these pages has places for.
MOST_STEPS = 120


@pytest.fixture
def owner(browser: Browser) -> Iterator[Browser]:
    """Return the browser with the owner of two publishers signed in, who is signed out again after the test."""
    browser.driver.delete_all_cookies()
    browser.open(f"/sign-in?next={PAGE}")
    browser.driver.find_element(By.NAME, "username").send_keys(OWNER)
    with browser.leaving():
        browser.driver.find_element(By.NAME, "password").send_keys(PASSWORD, Keys.ENTER)
    yield browser
    browser.driver.delete_all_cookies()


def main_text(browser: Browser) -> str:
    return str(browser.driver.find_element(By.TAG_NAME, "main").text)


def step_to(browser: Browser, found: str) -> None:
    """Press Tab until the element is reached of which a JavaScript expression is true."""
    for _step in range(MOST_STEPS):
        if browser.ask(f"(one => {found})(document.activeElement)"):
            # Who uses keys alone sees where that is.
            assert browser.ask("document.activeElement.matches(':focus-visible')")
            assert browser.ask("getComputedStyle(document.activeElement).outlineStyle !== 'none'")
            return
        ActionChains(browser.driver).send_keys(Keys.TAB).perform()
    raise AssertionError(f"no key leads to {found}")


def press(browser: Browser, found: str) -> None:
    """Go to an element by keys, and press it."""
    step_to(browser, found)
    with browser.leaving():
        ActionChains(browser.driver).send_keys(Keys.ENTER).perform()


@pytest.mark.parametrize("path", [PAGE, WITHDRAW, f"{WITHDRAW}?skill={LONG_NAME}", f"{WITHDRAW}?skill=of-nobody"])
def test_a_page_fits_every_width_and_has_no_serious_fault(owner: Browser, path: str) -> None:
    for scheme in ("light", "dark"):
        owner.colours(scheme, at_once=True)
        for width in WIDTHS:
            owner.open(path, width=width)
            assert owner.too_wide() == [], width
        owner.until(f"matchMedia('(prefers-color-scheme: {scheme})').matches && {AT_REST}")
        if AXE.exists():
            assert faults(owner) == [], scheme
    # The browser itself tells of the page of a skill that is nobody's, which has that status.
    assert [one for one in owner.complaints() if "of-nobody" not in one] == []


def test_offers_are_declined_and_a_claim_is_begun_by_keys_on_a_phone(owner: Browser) -> None:
    owner.open(PAGE, width=380)
    assert "owner-2 offers 2 skills" in main_text(owner)
    press(owner, "one.name === 'decline_all'")
    assert "owner-2 offers" not in main_text(owner)
    assert "owner-1 offers sample-01" in main_text(owner)
    press(owner, "one.name === 'decline'")
    assert "owner-1 offers" not in main_text(owner)
    assert "sample-03 to newco, until they accept" in main_text(owner)
    press(owner, "one.name === 'withdraw_all'")
    assert "sample-03 to newco" not in main_text(owner)

    step_to(owner, "one.name === 'repository_url'")
    with owner.leaving():
        ActionChains(owner.driver).send_keys("https://git.corp.example/team/skills", Keys.ENTER).perform()
    assert "Prove that git.corp.example/team is yours" in main_text(owner)
    step_to(owner, "one.name === 'repository_url'")
    with owner.leaving():
        ActionChains(owner.driver).send_keys("nothing", Keys.ENTER).perform()
    assert owner.driver.find_element(By.CSS_SELECTOR, "[role=alert]").text
    assert owner.too_wide() == []
    if AXE.exists():
        assert faults(owner) == []


def test_a_version_is_withdrawn_and_brought_back_by_keys_and_nothing_by_enter_in_a_field(owner: Browser) -> None:
    owner.open(f"{WITHDRAW}?skill=sample-23", width=380)
    step_to(owner, "one.name === 'reason'")
    ActionChains(owner.driver).send_keys("breaks tables", Keys.ENTER).perform()
    # Had Enter sent the form, the whole skill would be withdrawn, and the text be gone from the field.
    assert owner.ask("document.querySelector('[name=reason]').value") == "breaks tables"
    assert "sample-23 is offered" in main_text(owner)
    press(owner, "one.name === 'withdraw' && one.value !== ''")
    assert "The reason given: breaks tables" in main_text(owner)
    assert owner.too_wide() == []
    if AXE.exists():
        assert faults(owner) == []
    press(owner, "one.name === 'bring_back' && one.value !== ''")
    assert "breaks tables" not in main_text(owner)
    assert owner.complaints() == []
