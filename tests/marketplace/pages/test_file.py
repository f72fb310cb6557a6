"""The page of one file: numbered lines, marked findings, and deceptive characters escaped."""

from __future__ import annotations

import re

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient, Client

from marketplace.pages.file import LARGEST_SHOWN, LONGEST_LINE, as_text, in_colours
from tests.marketplace.pages.page_factory import finding, publish
from vskill.environments import WorkerEnv

put = sync_to_async(publish)


async def page(path: str, status: int = 200) -> str:
    response = await AsyncClient().get(f"/skills/release-notes/files/{path}")
    assert response.status_code == status
    return response.content.decode()


def lines(shown: str) -> list[str]:
    found = re.findall(r'<li id="L\d+"[^>]*>.*?<code>(.*?)</code></li>', shown, re.DOTALL)
    return [re.sub(r"</?span[^>]*>", "", line) for line in found]


@pytest.mark.django_db(transaction=True)
async def test_lines_are_numbered_and_can_be_linked_to(env: WorkerEnv) -> None:
    await put(env, files={"scripts/run.py": b"import os\r\n\r\nprint('<b>')\r\n"})
    shown = await page("scripts/run.py")
    assert lines(shown) == ["import os", "", "print(&#x27;&lt;b&gt;&#x27;)"]
    assert '<li id="L3"><a href="#L3"' in shown
    assert "3 lines" in shown


@pytest.mark.django_db(transaction=True)
async def test_code_has_colours_and_what_it_holds_stays_text(env: WorkerEnv) -> None:
    await put(env, files={"run.py": b"# <i>\ndef go():\n    return '<b>\xe2\x80\xae'\n"})
    shown = await page("run.py")
    assert '<span class="code-comment"># &lt;i&gt;</span>' in shown
    assert '<span class="code-keyword">return</span>' in shown
    assert '<span class="code-string">&#x27;&lt;b&gt;\\u{202e}&#x27;</span>' in shown


@pytest.mark.django_db(transaction=True)
async def test_lines_with_findings_are_marked_and_named_above(env: WorkerEnv) -> None:
    await put(env, files={"a.py": b"one\ntwo\n"}, findings=(finding(file="a.py", line=2, title="Odd second line"),))
    shown = await page("a.py")
    assert '<li id="L2" class="flagged">' in shown
    assert '<a href="#L2">Line 2</a>: Odd second line' in shown
    assert "Odd second line" not in await page("SKILL.md")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x89PNG\r\n\0\0", "not a text file"),
        (b"caf\xe9 au lait", "not a text file"),
        (b"", "This file is empty"),
        (b"x" * (LARGEST_SHOWN + 1), "too large to be shown"),
    ],
)
async def test_what_cannot_be_shown_says_why(env: WorkerEnv, content: bytes, words: str) -> None:
    await put(env, files={"odd.bin": content})
    shown = await page("odd.bin")
    assert words in shown
    assert lines(shown) == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", ["notes & ideas.md", "日本語.txt", "a#b?c.md", "100%.md", "deep/er/file.md"])
def test_a_file_of_any_name_opens_by_the_link_that_the_skill_shows(env: WorkerEnv, name: str) -> None:
    publish(env, files={name: b"found me"})
    # Unlike servers, Django's AsyncClient misreads a path with characters outside ASCII; its Client reads it right.
    skill = Client().get("/skills/release-notes").content.decode()
    links = re.findall(r'<a class="mono" href="(/skills/release-notes/files/[^"]+)"', skill)
    (link,) = (link for link in links if not link.endswith("/SKILL.md"))
    assert "found me" in Client().get(link).content.decode()


@pytest.mark.django_db(transaction=True)
def test_an_unusual_space_in_a_name_is_spelled_out_and_the_file_still_opens(env: WorkerEnv) -> None:
    publish(env, files={"at 3.05\u202fAM.md": b"found me"}, findings=(finding(file="at 3.05\\u{202f}AM.md", line=1),))
    skill = Client().get("/skills/release-notes").content.decode()
    [(link, row)] = re.findall(r'href="([^"]+)">at 3\.05\\u{202f}AM\.md</a>(.*?)</tr>', skill, re.DOTALL)
    assert "1 finding" in row
    shown = Client().get(link).content.decode()
    assert "found me" in shown
    assert '<a href="#L1">Line 1</a>: Fetches a page' in shown


@pytest.mark.django_db(transaction=True)
async def test_what_was_found_in_an_archive_is_said_of_the_archive(env: WorkerEnv) -> None:
    inside = finding(file="a.zip!/bin/x.py", line=4, title="Odd line")
    await put(env, files={"a.zip": b"PK\0", "b.zip!/c": b"x"}, findings=(inside, finding(file="b.zip!/c", title="Own")))
    archive = await page("a.zip")
    assert "<h3>Odd line</h3>" in archive
    assert '<span class="mono">a.zip!/bin/x.py:4</span>' in archive
    led = await AsyncClient().get("/skills/release-notes/files/a.zip!/bin/x.py")
    assert (led.status_code, led["Location"]) == (302, "/skills/release-notes/files/a.zip")
    assert "Own" in await page("b.zip!/c")
    await page("c.zip!/x", 404)
    assert "Odd line" not in await page("SKILL.md")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", ["nothing.md", "../SKILL.md", "/etc/passwd", "%2e%2e/%2e%2e/etc/passwd"])
async def test_a_path_that_the_manifest_does_not_list_is_not_found(env: WorkerEnv, path: str) -> None:
    await put(env)
    await page(path, 404)


@pytest.mark.django_db(transaction=True)
async def test_a_path_with_a_slash_too_many_leads_to_the_file(env: WorkerEnv) -> None:
    await put(env)
    response = await AsyncClient().get("/skills/release-notes/files/SKILL.md/")
    assert (response.status_code, response["Location"]) == (301, "/skills/release-notes/files/SKILL.md")


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("plain\ttext ünïcode 漢字", "plain\ttext ünïcode 漢字"),
        ("if admin\u202e//\u2066 check", "if admin\\u{202e}//\\u{2066} check"),
        ("zero\u200bwidth\ufeff", "zero\\u{200b}width\\u{feff}"),
        ("tag\U000e0041", "tag\\u{e0041}"),
        ("\x1b[2J", "\\u{1b}[2J"),
    ],
)
def test_characters_that_deceive_an_eye_are_spelled_out(line: str, shown: str) -> None:
    assert in_colours([(line, "")]) == shown


def test_an_endless_line_is_cut_and_says_by_how_much() -> None:
    shown = in_colours([("y" * LONGEST_LINE, "string"), ("y" * 1_234, "")])
    assert shown == f'<span class="code-string">{"y" * LONGEST_LINE}</span> … (1,234 more characters)'


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert as_text(b"\xef\xbb\xbfhello") == "hello"
