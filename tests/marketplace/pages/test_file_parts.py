"""A long file is shown in parts: each leads to its neighbours, and whatever names a line leads to the part with it."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from marketplace.errors import InvalidLines
from marketplace.pages.file import LARGEST_SHOWN, LONGEST_LINE
from marketplace.pages.file_parts import PART_LINES, at_line, line_of, read_lines
from marketplace.pages.text_links import TextLinks
from tests.marketplace.pages.page_factory import finding, publish
from vskill.environments import WorkerEnv

in_database = pytest.mark.django_db(transaction=True)
FILE = "/skills/release-notes/files/SKILL.md"
LINES = 2 * PART_LINES + 345


def get(address: str, status: int = 200) -> Any:
    """Return the response; the client of tests adds to what Django's has."""
    answer = Client().get(html.unescape(address))
    assert answer.status_code == status, answer.content.decode()[-2000:]
    return answer


def shown(address: str) -> str:
    page: str = get(address).content.decode()
    return page


def numbers(page: str) -> list[int]:
    return [int(one) for one in re.findall(r'<li id="L(\d+)"', page)]


def links(page: str) -> dict[str, str]:
    return {words: html.unescape(href) for href, words in re.findall(r'<a[^>]* href="([^"]*)"[^>]*>([^<]+)</a>', page)}


def publish_long(env: WorkerEnv, **details: Any) -> None:
    # The front matter of four lines, and one heading.
    publish(env, text="# Long\n" + "".join(f"line {number}\n" for number in range(6, LINES + 1)), **details)


@in_database
def test_a_long_text_is_read_to_its_last_line_by_links_alone(env: WorkerEnv) -> None:
    publish_long(env)
    seen, address = list[int](), FILE
    for words in ("Lines 1 to 5,000 of 10,345", "Lines 5,001 to 10,000 of 10,345", "Lines 10,001 to 10,345 of 10,345"):
        page = shown(address)
        assert words in re.sub(r"<[^>]+>", "", page)
        assert f"<code>line {max(numbers(page))}</code>" in page
        seen += numbers(page)
        address = links(page).get("Later lines", "")
        if seen[-1] > PART_LINES + 1 and "Earlier lines" in links(page):
            assert max(numbers(shown(links(page)["Earlier lines"]))) == numbers(page)[0] - 1
    assert seen == list(range(1, LINES + 1))
    assert address == ""


@in_database
def test_the_formatted_text_stands_once_above_the_lines_that_it_begins_with(env: WorkerEnv) -> None:
    publish_long(env)
    assert '<section id="text"' in shown(FILE)
    later = shown(f"{FILE}?lines=5001-10000")
    assert '<section id="text"' not in later
    assert links(later)["the first lines"] == f"{FILE}#text"


@in_database
def test_a_finding_far_down_leads_from_every_page_to_the_line_that_it_is_about(env: WorkerEnv) -> None:
    publish_long(env, findings=(finding(line=7_000), finding(line=12, title="Early"), finding(line=99_999, title="No")))
    publish_long(env, findings=(), files={"more.txt": b"1"})
    query = "?version=0.0.1"
    for page in (f"/skills/release-notes{query}", f"/skills/release-notes/scan{query}"):
        link = links(shown(page))["SKILL.md:7000"]
        assert link == f"{FILE}{query}&lines=5001-10000#L7000"
        assert '<li id="L7000" class="flagged">' in shown(link)
    first, second = shown(FILE + query), shown(f"{FILE}{query}&lines=5001-10000")
    assert links(first)["Line 12"] == "#L12"
    assert links(first)["Line 7,000"] == f"{FILE}{query}&lines=5001-10000#L7000"
    assert (links(second)["Line 12"], links(second)["Line 7,000"]) == (f"{FILE}{query}#L12", "#L7000")
    assert "Line 99,999: No" in first
    assert links(second)["Permalink"] == f"{FILE}{query}&lines=5001-10000"


@in_database
def test_any_lines_lead_to_the_part_that_has_them_without_a_script(env: WorkerEnv) -> None:
    publish_long(env)
    for asked, leads in {
        "7000": "&lines=5001-10000#L7000",
        "7000-7100": "&lines=5001-10000#L7000-L7100",
        "4999-5002": "#L4999-L5002",
        "10001-10345": "&lines=10001-15000#L10001-L10345",
    }.items():
        address = get(f"{FILE}?version=0.0.1&lines={asked}", 302)["Location"]
        assert address == f"{FILE}?version=0.0.1{leads}"
        assert int(leads.partition("#L")[2].partition("-")[0]) in numbers(shown(address))


@in_database
def test_lines_that_there_are_not_are_refused_in_words(env: WorkerEnv) -> None:
    publish_long(env)
    for asked in ("0", "9-3", "-5", "5-", "1" * 10, "٣", "1-2-3"):
        assert "Write the number of a line" in get(f"{FILE}?lines={asked}", 400).content.decode(), asked
    assert "the lines &#x27;a-b&#x27;" in get(f"{FILE}?lines=a-b", 400).content.decode()
    words = "SKILL.md has 10,345 lines. The address asks for its lines from 15,001 on"
    assert words in get(f"{FILE}?lines=15001-20000", 400).content.decode()


@in_database
def test_a_file_that_is_not_shown_says_what_was_found_in_it_and_marks_nothing(env: WorkerEnv) -> None:
    found = (
        finding(file="data.txt", line=9, title="A key", excerpt="AKIA"),
        finding(file="data.txt", kind="coverage", title="Not read", why="It is too large.", line=None),
    )
    publish(env, files={"data.txt": b"x" * (LARGEST_SHOWN + 1), "a.bin": b"\0"}, findings=found)
    page = shown("/skills/release-notes/files/data.txt?lines=5001-10000")
    assert "1 finding in this file.</b> Its lines are not shown here" in page
    for words in (
        "A key",
        "AKIA",
        "Bring the text along in a file.",
        "data.txt:9",
        "No engine has read all of it",
    ):
        assert words in page
    assert "are marked" not in page
    assert "#L9" not in page
    other = shown("/skills/release-notes/files/a.bin")
    assert "finding" not in re.sub(r"<[^>]+>", "", other)


@in_database
@pytest.mark.parametrize(
    ("content", "rows"),
    [(lambda: b"\n" * LARGEST_SHOWN, PART_LINES), (lambda: b"x" * LARGEST_SHOWN, 1), (lambda: b"x" * 5_000_000, 0)],
)
def test_the_page_of_the_largest_files_stays_small(env: WorkerEnv, content: Callable[[], bytes], rows: int) -> None:
    publish(env, files={"data.txt": content()})
    page = shown("/skills/release-notes/files/data.txt")
    assert len(numbers(page)) == rows
    assert len(page) < 1_000_000
    assert f"({LARGEST_SHOWN - LONGEST_LINE:,} more characters)" in page or rows != 1


def test_a_link_in_a_text_to_lines_of_a_file_leads_to_their_part() -> None:
    texts = TextLinks("x", frozenset({"a.py"}), exact="?version=1")
    assert texts.link("a.py", "L7").href == "/skills/x/files/a.py?version=1#L7"
    assert texts.link("a.py", "L6000-L6002").href == "/skills/x/files/a.py?version=1&lines=5001-10000#L6000-L6002"
    assert texts.link("a.py", "Last").href == "/skills/x/files/a.py?version=1#user-content-last"


def test_parts_begin_where_others_end() -> None:
    assert [at_line("/f", line) for line in (0, 1, 5_000)] == ["/f", "/f#L1", "/f#L5000"]
    assert at_line("/f", 5_001) == "/f?lines=5001-10000#L5001"
    assert (read_lines(""), read_lines("1-5000").is_part, read_lines("5000-9999").is_part) == (
        read_lines("1-5000"), True, False
    )  # fmt: skip
    assert [line_of(one) for one in ("L7", "L7-L9", "l7", "L", "L1x")] == [7, 7, 0, 0, 0]
    with pytest.raises(InvalidLines):
        read_lines("5-4")
