"""The page that compares two versions of a skill: verdicts, what each can touch, and lines."""

from __future__ import annotations

import html
import re

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from marketplace.artifacts.diffs import FileChange
from marketplace.catalog import quarantine_version, rename_skill
from marketplace.pages.patches import LONGEST_LINE, MOST_CHARACTERS, MOST_LINES, shown_changes
from tests.marketplace.pages.page_factory import publish
from vskill.environments import WorkerEnv

PLACE = "/skills/release-notes/compare"
OLD = {
    "run.sh": b"one\ntwo\nthree\n",
    "gone.txt": b"was here\n",
    "mode": b"same\n",
    "end.txt": b"line\n",
    "data.bin": b"\0\1",
    "large.txt": b"x\n" * 2_001,
    "same.txt": b"not named by the page\n",
}
NEW = {
    "run.sh": b"one\ntwo \xe2\x80\xae<b>\nthree\n",
    "new/more.txt": b"fresh\n",
    "mode": b"same\n",
    "end.txt": b"line",
    "data.bin": b"\0\2",
    "large.txt": b"y\n" * 2_001,
    "same.txt": b"not named by the page\n",
}


async def page(path: str, status: int = 200) -> str:
    response = await AsyncClient().get(path)
    assert response.status_code == status, response.content.decode()[:500]
    return response.content.decode()


def words(text: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", text)))


def _publish(env: WorkerEnv) -> None:
    publish(env, files=OLD, capabilities=("filesystem_read",), verdict="notes")
    publish(env, files=NEW, capabilities=("filesystem_read", "shell_execution"), version="1.1.0")


@pytest.mark.django_db(transaction=True)
async def test_two_versions_are_compared_in_verdict_reach_and_lines(env: WorkerEnv) -> None:
    await sync_to_async(_publish)(env)
    raw = await page(PLACE)
    shown = words(raw)
    assert "Changes from 0.0.1 to 1.1.0" in shown
    assert "Verdict Checked, with notes No known pattern" in shown
    assert "Commands nothing seen Runs commands or code not before" in shown
    assert "It now also Runs commands" in shown
    assert "1 added, 4 changed, 1 removed" in shown
    for row in (
        "new/more.txt + added +1 −0",
        "gone.txt − removed +0 −1",
        "end.txt changed no line differs, only the end of the last one +0 −0",
        "data.bin changed not a text —",
        "large.txt changed too large to compare line by line —",
    ):
        assert row in shown
    # Numbers on both sides, a sign beside the colour, and what cannot be seen spelled out.
    assert "@@ -1,3 +1,3 @@ 1 1 one 2 − two 2 + two \\u{202e}<b> 3 3 three" in shown
    assert re.search(r'<tr class="added"><td class="num"></td><td class="num">2</td><td class="sign">\+</td>', raw)
    assert "not named by the page" not in shown
    back = words(await page(f"{PLACE}?from=1.1.0&to=0.0.1"))
    assert "1.1.0 was published before" not in back
    assert "0.0.1 was published before 1.1.0, so this shows the way back" in back
    assert "Both are the same version" in await page(f"{PLACE}?from=1.1.0&to=1.1.0")
    assert "0.0.1 is the first version" in await page(f"{PLACE}?to=0.0.1")
    skill = await page("/skills/release-notes")
    assert f'href="{PLACE}?to=1.1.0"' in skill
    assert f'href="{PLACE}?to=0.0.1"' not in skill
    assert f'href="{PLACE}?from=0.0.1&amp;to=1.1.0"' in skill


@pytest.mark.django_db(transaction=True)
async def test_what_is_not_shown_is_not_compared(env: WorkerEnv) -> None:
    await sync_to_async(publish)(env)
    assert "There is one version only" in await page(PLACE)
    await sync_to_async(publish)(env, files={"bad.txt": b"poison\n"})
    await sync_to_async(publish)(env, files={"good.txt": b"fine\n"})
    await sync_to_async(quarantine_version)(env, "release-notes", "0.0.2", actor="ada", reason="It was malware.")
    shown = words(await page(PLACE))
    assert "Changes from 0.0.1 to 0.0.3" in shown
    assert "poison" not in shown
    for query in ("from=0.0.2", "to=0.0.2"):
        assert "It was malware." in await page(f"{PLACE}?{query}", 404)
    assert "no such version" in await page(f"{PLACE}?from=9.9.9", 404)
    assert "no parameter &#x27;version&#x27;" in await page(f"{PLACE}?version=0.0.1", 400)
    await sync_to_async(rename_skill)(env, "release-notes", "notes-of-releases", actor="ada", reason="clearer")
    moved = await AsyncClient().get(f"{PLACE}?from=0.0.1")
    assert (moved.status_code, moved["Location"]) == (301, "/skills/notes-of-releases/compare?from=0.0.1")


def _change(lines: list[str]) -> FileChange:
    return FileChange("a", "added", len(lines), 0, "\n".join([f"@@ -0,0 +1,{len(lines)} @@", *lines]))


def test_what_a_page_has_no_room_for_is_counted() -> None:
    many, rest = shown_changes([_change([f"+{number}" for number in range(MOST_LINES)]), _change(["+more"])])
    assert (len(many["rows"]), many["left_out"]) == (MOST_LINES, 1)
    assert (rest["rows"], rest["left_out"]) == ([], 2)
    wide, late = shown_changes([_change(["+" + "x" * 5_000] * 400), _change(["+late"])])
    assert wide["rows"][1]["text"] == "x" * LONGEST_LINE + " … (4,000 more characters)"
    assert sum(len(row["text"]) for row in wide["rows"]) <= MOST_CHARACTERS
    assert len(wide["rows"]) + wide["left_out"] == 401
    assert late["left_out"] == 0


def test_lines_of_another_system_are_spelled_out_only_where_their_ends_differ() -> None:
    alike, mixed = shown_changes([_change(["+one\r", "+two\r"]), _change(["+one\r", "+two"])])
    assert [row["text"] for row in alike["rows"][1:]] == ["one", "two"]
    assert [row["text"] for row in mixed["rows"][1:]] == ["one\\u{d}", "two"]
