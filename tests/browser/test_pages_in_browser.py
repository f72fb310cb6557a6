"""Every page in a real browser: layout, requests to other hosts, content security policy, keyboard control."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.browser.chromium import Browser, open_browser
from tests.browser.populate import LONG_NAME
from tests.browser.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WIDTHS = (320, 380, 768, 1280, 1920)
PAGES = {
    "home": "/",
    "list": "/skills",
    "table": "/skills?view=table",
    "filtered": f"/skills?verdict=notes&q=release&compare=release-notes&compare={LONG_NAME}&compare=none",
    "no match": "/skills?q=zzzzzz",
    "skill": "/skills/release-notes",
    "old version": "/skills/release-notes?version=1.0.0",
    "long name": f"/skills/{LONG_NAME}",
    "scan": "/skills/release-notes/scan",
    "scan-again": "/skills/release-notes/scan-again",
    "file": "/skills/release-notes/files/scripts/collect.py",
    "text file": "/skills/release-notes/files/references/style.md",
    "last part of a file": f"/skills/{LONG_NAME}/files/words.txt?lines=5001-10000",
    "image file": "/skills/release-notes/files/images/areas.png",
    "compare": f"/compare?skill=release-notes&skill={LONG_NAME}&skill=sample-01&skill=sample-02",
    "compare absent": f"/compare?skill=release-notes&skill={LONG_NAME}&skill=release-note",
    "versions": "/skills/release-notes/compare",
    "publisher": "/publishers/an-owner-with-a-long-name",
    "collections": "/collections",
    "collection": "/collections/our-team",
    "report": "/skills/release-notes/report",
    "verdicts": "/about/verification",
    "api": "/about/api",
    "submit": "/submit",
    "device": "/device",
    "queue": "/queue",
}
# Pages of an error; the console of the browser complains of their status.
ERRORS = {"not found": "/skills/there-is-no-such-skill", "unknown filter": "/skills?verdict=good"}


@pytest.fixture(params=PAGES)
def path(request: pytest.FixtureRequest) -> str:
    return PAGES[request.param]


def check_layout(browser: Browser, path: str) -> None:
    for width in WIDTHS:
        # A phone shows its pages in another way, which begins when a page is opened.
        if width in (WIDTHS[0], 768):
            browser.open(path, width=width)
        else:
            browser.resize(width, 900)
        assert browser.too_wide() == [], f"scrolls sideways at {width}"
    with browser.on_paper():
        assert browser.lost_on_paper() == []


def check(browser: Browser, server: Server, path: str) -> None:
    check_layout(browser, path)
    assert browser.complaints() == []
    assert browser.hosts_asked() == {urlsplit(server.base).netloc}


def test_a_page_fits_every_width_and_asks_nobody_else(browser: Browser, server: Server, path: str) -> None:
    check(browser, server, path)
    assert browser.ask("document.querySelectorAll('h1').length") == 1
    ids = browser.ask("[...document.querySelectorAll('[id]')].map(element => element.id)")
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("state", ["received", "tier1_scanning", "on_hold", "tier1_failed", "listing", "job", "report"])
def test_a_submission_fits_every_width_and_asks_nobody_else(browser: Browser, server: Server, state: str) -> None:
    check(browser, server, server.submissions[state])


def test_many_skills_are_turned_over_by_keyboard_and_without_scripts(browser: Browser, server: Server) -> None:
    with browser.without_scripts():
        browser.open(server.submissions["listing"], width=380)
        with browser.leaving():
            browser.driver.find_element(By.ID, "choice-words").send_keys("frontmatter-is-in-no-name", Keys.ENTER)
        assert "No skill matches" in browser.driver.page_source
        with browser.leaving():
            browser.driver.find_element(By.LINK_TEXT, "Show the whole list").send_keys(Keys.ENTER)
        with browser.leaving():
            browser.driver.find_element(By.CSS_SELECTOR, "[rel=next]").send_keys(Keys.ENTER)
        assert "51 to 100 of 120" in browser.driver.page_source


def test_pick_all_is_ticked_while_all_are_and_between_while_some_are(browser: Browser, server: Server) -> None:
    browser.open(server.submissions["listing"], width=1280)
    pick_all = browser.driver.find_element(By.CSS_SELECTOR, "input[data-check-all]")
    boxes = browser.driver.find_elements(By.CSS_SELECTOR, 'input[name="paths"]:not(:disabled)')
    if not pick_all.is_selected():
        pick_all.send_keys(Keys.SPACE)
    assert all(box.is_selected() for box in boxes)
    boxes[0].send_keys(Keys.SPACE)
    assert not pick_all.is_selected()
    assert pick_all.get_property("indeterminate")
    boxes[0].send_keys(Keys.SPACE)
    assert pick_all.is_selected()
    pick_all.send_keys(Keys.SPACE)
    assert not any(box.is_selected() for box in boxes)
    browser.open(server.submissions["listing"], width=1280)
    ticked = browser.ask("[...document.querySelectorAll('[name=paths]:not(:disabled)')].every(box => box.checked)")
    assert browser.ask("document.querySelector('[data-check-all]').checked") is ticked


def test_four_skills_stand_side_by_side_without_scrolling_and_a_wide_screen_has_more_cards(browser: Browser) -> None:
    browser.open(PAGES["compare"])
    assert browser.ask("(box => box.scrollWidth <= box.clientWidth)(document.querySelector('.compare'))")
    for width, columns in ((1280, 2), (1920, 3)):
        browser.open("/skills", width=width)
        tops = "[...document.querySelectorAll('.card')].map(card => card.getBoundingClientRect().top)"
        assert browser.ask(tops).count(browser.ask(tops)[0]) == columns


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_page_fits_every_width(browser: Browser, error: str) -> None:
    check_layout(browser, ERRORS[error])
    assert browser.driver.find_element(By.CSS_SELECTOR, ".error-page h1").text


def test_paper_shows_in_black_what_a_screen_shows_in_colours_or_when_it_is_pointed_at(browser: Browser) -> None:
    browser.open("/skills/release-notes")
    with browser.on_paper("dark"):
        inks = "[...new Set([...document.querySelectorAll('.badge, .chip, h1')].map(e => getComputedStyle(e).color))]"
        greys = [re.findall(r"\d+", ink) for ink in browser.ask(inks)]
        assert all(red == green == blue and int(red) < 100 for red, green, blue in greys)
        added = "getComputedStyle(document.querySelector('{}'), '::after').content"
        assert browser.ask(added.format("time[title]")).endswith('UTC"')
        assert "https://example.com/" in browser.ask(added.format(".prose a[href^=http]"))
        assert all(
            one.is_displayed() for one in browser.driver.find_elements(By.CSS_SELECTOR, ".tab-panel, .tabs label")
        )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_follow_the_preference_of_the_person(browser: Browser, scheme: str) -> None:
    browser.colours(scheme)
    browser.open("/skills")
    background, ink = (
        sum(map(int, re.findall(r"\d+", browser.ask(f"getComputedStyle(document.documentElement).{name}"))[:3]))
        for name in ("backgroundColor", "color")
    )
    assert (background > ink) is (scheme == "light")


def test_the_first_key_leads_past_the_header_to_the_content(browser: Browser) -> None:
    browser.open("/skills")
    body = browser.driver.find_element(By.TAG_NAME, "body")
    body.send_keys(Keys.TAB)
    skip = browser.driver.switch_to.active_element
    assert skip.text == "Skip to the content"
    skip.send_keys(Keys.ENTER)
    browser.until("document.activeElement.id === 'content'")


def test_what_has_the_focus_is_outlined(browser: Browser) -> None:
    browser.open("/skills")
    for _key in range(12):
        browser.driver.switch_to.active_element.send_keys(Keys.TAB)
        seen = browser.ask(
            "(e => [getComputedStyle(e).outlineStyle, parseFloat(getComputedStyle(e).outlineWidth), e.outerHTML])"
            "(document.activeElement)"
        )
        assert seen[0] == "solid", seen
        assert seen[1] >= 2, seen


def test_the_client_is_chosen_by_arrow_keys(browser: Browser) -> None:
    browser.open("/skills/release-notes")
    panels = browser.driver.find_elements(By.CSS_SELECTOR, ".tab-panel")
    assert len(panels) == 8
    assert [number for number, panel in enumerate(panels) if panel.is_displayed()] == [0]
    browser.driver.find_element(By.ID, "client-skills").send_keys(Keys.ARROW_RIGHT)
    assert [number for number, panel in enumerate(panels) if panel.is_displayed()] == [1]


def test_a_line_that_is_typed_leads_to_the_part_of_a_file_that_has_it(browser: Browser) -> None:
    browser.open(PAGES["last part of a file"])
    browser.ask("window.location.hash = 'L5003'")
    browser.until("document.querySelector('#L5003.picked')")
    browser.ask("window.location.hash = 'L4000-L4001'")
    browser.until("document.querySelectorAll('#L4000.picked, #L4001.picked').length === 2")
    link = browser.driver.find_element(By.CSS_SELECTOR, "a[data-permalink]").get_attribute("href")
    assert link is not None
    assert link.endswith("?version=0.0.1#L4000-L4001")
    browser.ask("window.location.hash = 'L5009'")
    browser.until("document.querySelector('#L5009.picked')")
    assert "version=0.0.1&lines=5001-10000#L5009" in browser.ask("document.querySelector('[data-permalink]').href")
    with browser.without_scripts():
        browser.open(PAGES["last part of a file"], width=380)
        with browser.leaving():
            browser.driver.find_element(By.ID, "to-line").send_keys("12", Keys.ENTER)
        assert browser.driver.current_url.endswith("words.txt#L12")
    assert browser.complaints() == []


def test_a_search_renews_the_list_and_the_address_without_loading_the_page(browser: Browser) -> None:
    browser.open("/skills")
    browser.ask("window.kept = true")
    field = browser.driver.find_element(By.ID, "q")
    field.send_keys("release")
    browser.until("document.querySelectorAll('#results .card').length === 1")
    assert browser.ask("window.kept")
    assert "q=release" in browser.driver.current_url
    # What head and body lead to are the feeds of this search, also where it finds nothing.
    feeds = "[...document.querySelectorAll('{} [type=\"application/atom+xml\"]')].map(one => one.getAttribute('href'))"
    assert "/feeds/new.atom?q=release" in browser.ask(feeds.format("#results"))
    field.send_keys("zzz")
    browser.until("document.querySelector('#results .empty h2')")
    browser.until(f"String({feeds.format('head')}) === String({feeds.format('#results')})")
    assert "/feeds/new.atom?q=releasezzz" in browser.ask(feeds.format("head"))
    assert browser.complaints() == []


def test_a_search_that_fails_leaves_no_list_of_another_one_and_says_so(browser: Browser, server: Server) -> None:
    browser.open("/skills")
    failed = "document.querySelector('#results').innerText + document.querySelector('#live-status').innerText"
    with browser.unreachable(f"{server.base}/skills?*"):
        field = browser.driver.find_element(By.ID, "q")
        field.send_keys("release")
        browser.until("document.querySelector('#results .failed')")
        assert browser.ask(failed).count("The registry could not be reached.") == 2
        assert not browser.driver.find_elements(By.CSS_SELECTOR, ".card, .facets, link[rel=alternate]")
    field.send_keys("-")
    browser.until("document.querySelector('#live-status').textContent === '1 skill'")
    assert len(browser.driver.find_elements(By.CSS_SELECTOR, "#results .card")) == 1
    # The server refuses it, and says why in the words of its page, to which the link leads.
    browser.ask("document.querySelector('#search').insertAdjacentHTML('beforeend', '<input name=verdict value=good>')")
    field.send_keys("n")
    browser.until("document.querySelector('#results .failed')")
    assert browser.ask(failed).count("'good'") == 2
    with browser.leaving():
        browser.driver.find_element(By.LINK_TEXT, "Search again").send_keys(Keys.ENTER)
    assert browser.driver.current_url.endswith("/skills?q=release-n&verdict=good")
    assert "'good'" in browser.driver.find_element(By.CSS_SELECTOR, ".error-page .lede").text
    browser.complaints()


def test_lines_of_a_file_are_picked_by_keyboard(browser: Browser) -> None:
    browser.open(PAGES["file"])
    browser.ask("document.querySelector('.code-lines').focus()")
    browser.driver.switch_to.active_element.send_keys(Keys.TAB)
    browser.driver.switch_to.active_element.send_keys(Keys.ARROW_DOWN, Keys.ENTER)
    assert browser.driver.current_url.endswith("#L2")
    browser.driver.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
    browser.driver.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
    browser.driver.switch_to.active_element.send_keys(Keys.SHIFT, Keys.ENTER)
    browser.until("document.querySelectorAll('.picked').length === 3")
    assert browser.ask("document.querySelector('[data-permalink]').hash") == "#L2-L4"
    assert len(browser.driver.window_handles) == 1
    # And one Tab leads past all of them.
    browser.driver.switch_to.active_element.send_keys(Keys.TAB)
    assert not browser.ask("document.activeElement.closest('.code-lines')")
    assert browser.driver.find_element(By.CSS_SELECTOR, ".file-keys kbd").is_displayed()


def test_a_page_that_is_live_renews_itself(browser: Browser, server: Server) -> None:
    with browser.hurried():
        browser.open(server.submissions["received"])
    browser.ask("document.querySelector('.state-panel').dataset.old = 'yes'")
    browser.ask("document.addEventListener('htmx:beforeRequest', () => { window.turns = (window.turns || 0) + 1; })")
    browser.until("!document.querySelector('.state-panel').dataset.old && window.turns > 8")
    asked = "performance.getEntriesByType('resource').filter(one => one.name.endsWith('fragment=1')).length"
    # One at its first turn, and one when the stream is there and says that something changed.
    assert browser.ask(asked) <= 4, "the server tells of changes, so the page does not ask at each turn as well"
    assert browser.complaints() == []


def test_a_live_page_asks_by_itself_where_the_stream_fails_and_says_when_nothing_answers(
    browser: Browser, server: Server
) -> None:
    page = server.submissions["received"]
    asked = "performance.getEntriesByType('resource').filter(one => one.name.endsWith('fragment=1')).length"
    with browser.unreachable("*/events"), browser.hurried():
        browser.open(page)
        browser.until(f"{asked} > 2")
        assert not browser.driver.find_elements(By.CSS_SELECTOR, ".stale")
    with browser.unreachable("*fragment=1"):
        browser.until("document.querySelector('.live-mark.stale')")
        assert "Not renewed since" in browser.ask("document.querySelector('#live-status').textContent")
    browser.until("!document.querySelector('.live-mark.stale')")
    browser.complaints()


def test_a_copy_button_is_there_and_copies(browser: Browser, server: Server) -> None:
    browser.allow_clipboard(server.base)
    browser.open("/skills/release-notes")
    browser.driver.find_element(By.CSS_SELECTOR, "label[for=client-codex]").click()
    button = browser.driver.find_element(By.CSS_SELECTOR, "button[data-copy=install-codex]")
    assert button.is_displayed()
    button.click()
    browser.until("document.querySelector('.copy-done')")
    # Two commands are two lines, however many lines they take on the page.
    assert browser.ask("navigator.clipboard.readText()").splitlines() == [
        f"codex plugin marketplace add {server.base}/git/acme/release-notes.git --ref 1.1.0",
        "codex plugin add release-notes@vskill-release-notes",
    ]


def test_without_scripts_every_page_says_the_same(server: Server) -> None:
    with open_browser(server.base) as plain, plain.without_scripts():
        for path in (*PAGES.values(), *server.submissions.values()):
            plain.open(path)
            assert plain.driver.find_element(By.TAG_NAME, "h1").is_displayed()
            assert plain.driver.find_elements(By.CSS_SELECTOR, "button[data-copy]:not([hidden])") == []
        plain.open("/skills")
        with plain.leaving():
            plain.driver.find_element(By.ID, "q").send_keys("release", Keys.ENTER)
        assert len(plain.driver.find_elements(By.CSS_SELECTOR, ".card")) == 1
        plain.open("/skills")
        seen = {link.get_attribute("href") for link in plain.driver.find_elements(By.CSS_SELECTOR, ".card h3 a")}
        # Tall enough that the driver need not scroll, for which it would use a script.
        plain.resize(1280, 4000)
        with plain.leaving():
            plain.driver.find_element(By.CSS_SELECTOR, "a[rel=next]").click()
        following = {link.get_attribute("href") for link in plain.driver.find_elements(By.CSS_SELECTOR, ".card h3 a")}
        assert (len(seen), len(following)) == (24, 4)
        assert seen.isdisjoint(following)
        plain.open("/skills/release-notes")
        plain.resize(1280, 4000)
        plain.driver.find_element(By.CSS_SELECTOR, "label[for=client-curl]").click()
        assert "sha256sum -c" in plain.driver.find_element(By.ID, "install-curl").text


def test_contents_and_images_of_a_text_work_and_take_nothing_from_the_page(browser: Browser, server: Server) -> None:
    browser.open("/skills/release-notes")
    browser.driver.find_element(By.LINK_TEXT, "Location").send_keys(Keys.ENTER)
    assert browser.ask("document.querySelector(':target').textContent") == "Location"
    assert browser.ask("typeof document.location.href") == "string"
    browser.open("/skills/release-notes/files/references/style.md")
    browser.ask("document.querySelector('.prose img').scrollIntoView()")
    assert browser.ask("document.querySelector('.prose img').decode().then(() => true)") is True
    browser.driver.find_element(By.LINK_TEXT, "the steps").click()
    assert browser.ask(
        "document.activeElement !== null && document.querySelector('.file-text :target').textContent"
    ) == ("Steps")
    assert browser.complaints() == []
