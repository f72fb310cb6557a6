"""The page of all files: folders before files, in sum, however deep, and a way to each file."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from marketplace.pages.tree import DEEPEST_INDENT, tree
from tests.marketplace.pages.page_factory import finding, publish
from vskill.environments import WorkerEnv


def listed(path: str, size: int = 1, findings: int | None = 0) -> dict[str, Any]:
    return {"path": path, "size": size, "findings": findings, "href": f"/{path}"}


def names(rows: list[dict[str, Any]]) -> list[tuple[int, str]]:
    return [(row["indent"], row["name"]) for row in rows]


def test_folders_come_first_and_each_in_the_order_of_names() -> None:
    rows = tree([listed(path) for path in ("b.md", "A.md", "z/y.md", "lib/two.py", "lib/x/one.py")])
    assert names(rows) == [
        (0, "lib/"), (1, "x/"), (2, "one.py"), (1, "two.py"), (0, "z/"), (1, "y.md"), (0, "A.md"), (0, "b.md")
    ]  # fmt: skip
    assert rows[2]["path"] == "lib/x/one.py"


def test_a_folder_has_what_is_in_it_in_sum() -> None:
    files = [listed("a/b.md", 10, 2), listed("a/c/d.md", 5, None), listed("a/c/e.md", 1, 0), listed("f.md", 100, 7)]
    folder, inner = (row for row in tree(files) if row["file"] is None)
    assert {name: folder[name] for name in ("count", "size", "findings", "unread")} == {
        "count": 3, "size": 16, "findings": 2, "unread": 1
    }  # fmt: skip
    assert (inner["name"], inner["count"], inner["size"]) == ("c/", 2, 6)


def test_a_folder_that_holds_one_folder_alone_shares_its_row() -> None:
    assert names(tree([listed("a/b/c/d.md"), listed("a/b/c/e.md")])) == [(0, "a/b/c/"), (1, "d.md"), (1, "e.md")]


def test_a_path_of_any_depth_is_shown_within_the_page() -> None:
    deep = "".join(f"d{number}/" for number in range(3_000))
    assert names(tree([listed(f"{deep}x.md")])) == [(0, deep), (1, "x.md")]
    stairs = [listed("s/" * depth + "x.md") for depth in range(1_200)]
    assert max(row["indent"] for row in tree(stairs)) == DEEPEST_INDENT


def test_a_file_and_a_folder_of_one_name_are_two_rows() -> None:
    assert names(tree([listed("a"), listed("a/b")])) == [(0, "a/"), (1, "b"), (0, "a")]


@pytest.mark.django_db(transaction=True)
def test_the_page_leads_to_each_file_and_back(env: WorkerEnv) -> None:
    publish(env, files={"lib/<b>.py": b"x = 1\n", "lib/a.sh": b"true\n"}, findings=(finding(file="lib/a.sh", line=1),))
    shown = Client().get("/skills/release-notes/files").content.decode()
    assert "<b>.py" not in shown
    assert re.search(
        r'lib/</span> <span class="small muted">2 files</span></th><td class="nowrap small">1 finding<', shown
    )
    (link,) = re.findall(r'href="([^"]+)" aria-label="lib/&lt;b&gt;.py"', shown)
    file = Client().get(link).content.decode()
    assert '<a href="/skills/release-notes/files">Files</a>' in file
    assert 'download="&lt;b&gt;.py">Download</a>' in file
    (permalink,) = re.findall(r'href="([^"]+)" data-permalink', file)
    assert "?version=" in permalink
    assert Client().get(permalink).status_code == 200


@pytest.mark.django_db(transaction=True)
def test_a_skill_that_is_not_there_has_no_files(env: WorkerEnv) -> None:
    assert Client().get("/skills/nothing/files").status_code == 404
    publish(env)
    assert Client().get("/skills/release-notes/files?version=9.9.9").status_code == 404
    assert Client().get("/skills/release-notes/files/")["Location"] == "/skills/release-notes/files"
