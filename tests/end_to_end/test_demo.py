"""The demo: a reproducible commit, submitted once however often it is loaded, with every kind of outcome."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django import Settings

from submissions.demo.repository import FOLDER, build_demo_repository
from tests.git_factory import git, make_repository, skill_md

GOOD = {"colour-contrast", "csv-tidy", "link-check", "meeting-minutes", "release-notes", "sql-review", "诗词赏析"}


def load(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    """Run the command and return its skills in the only environment."""
    call_command("load_demo", "--json", *arguments)
    environments = json.loads(capsys.readouterr().out)["environments"]
    assert len(environments) == 1
    skills: list[dict[str, Any]] = environments[0]["skills"]
    return skills


def outcomes(skills: list[dict[str, Any]]) -> dict[str, str]:
    return {skill["skillName"]: skill["outcome"] for skill in skills}


async def test_two_builds_are_one_commit_whoever_builds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = await build_demo_repository(tmp_path / "one.git")
    (tmp_path / ".gitconfig").write_text("[user]\n\tname = Somebody\n[core]\n\tautocrlf = true\n", encoding="utf-8")
    for name, value in {
        "HOME": str(tmp_path),
        "GIT_AUTHOR_NAME": "Somebody",
        "GIT_AUTHOR_DATE": "2001-01-01T00:00:00",
        "GIT_DIR": str(tmp_path / "elsewhere"),
        "TZ": "Asia/Shanghai",
    }.items():
        monkeypatch.setenv(name, value)
    other = await build_demo_repository(tmp_path / "other.git")
    assert one.commit_sha == other.commit_sha
    monkeypatch.undo()
    assert git(other.path, "rev-parse", "HEAD").decode().strip() == one.commit_sha
    git(other.path, "fsck", "--strict")


async def test_a_repository_that_is_there_already_is_left_alone(tmp_path: Path) -> None:
    first = await build_demo_repository(tmp_path / "demo.git")
    before = (first.path / "HEAD").stat()
    second = await build_demo_repository(tmp_path / "demo.git")
    assert (second, (second.path / "HEAD").stat().st_ino) == (first, before.st_ino)


async def test_the_demo_of_an_earlier_release_gives_way(tmp_path: Path) -> None:
    make_repository(tmp_path / "demo.git", {"old/SKILL.md": skill_md()})
    built = await build_demo_repository(tmp_path / "demo.git")
    assert git(built.path, "rev-parse", "HEAD").decode().strip() == built.commit_sha


def test_nothing_in_the_demo_is_a_link_in_a_checkout_of_this_project() -> None:
    assert [path for path in FOLDER.rglob("*") if path.is_symlink()] == []


@pytest.mark.django_db(transaction=True)
def test_every_way_to_end_by_itself_is_seen(capsys: pytest.CaptureFixture[str]) -> None:
    submitted = load(capsys)
    assert outcomes(submitted) == {
        **dict.fromkeys(GOOD | {"key-backup", "offline-dictionary", "shared-glossary"}, "created"),
        "unfinished-draft": "invalid",
    }
    call_command("consume", "--drain")
    capsys.readouterr()
    ends = {skill["skillName"]: skill["submission"] for skill in load(capsys) if skill["submission"]}
    assert {name: end["state"] for name, end in ends.items()} == {
        **dict.fromkeys(GOOD, "PUBLISHED"),
        "key-backup": "ON_HOLD",
        "shared-glossary": "ON_HOLD",
        "offline-dictionary": "TIER1_FAILED",
    }
    assert {name for name, end in ends.items() if end["verdict"] == "notes"} == {"csv-tidy", "link-check"}
    assert ends["release-notes"]["version"] == "1.2.0"
    assert "10 MiB are allowed (words.tsv)" in str(ends["offline-dictionary"]["decision"]["reasons"])
    assert "A symbolic link was left out" in str(ends["shared-glossary"]["decision"]["reasons"])
    made = Client().get("/api/v1/collections/release-day").json()
    assert [(one["slug"], one["version"], one["pinned"]) for one in made["skills"]] == [
        ("release-notes", "1.2.0", True),
        ("sql-review", "2.0.0", False),
        ("link-check", "0.9.0", False),
        ("colour-contrast", "1.0.0", False),
    ]
    for name in GOOD:
        page = Client().get(f"/skills/{ends[name]['slug']}")
        assert page.status_code == 200
        assert name in page.content.decode()


@pytest.mark.django_db(transaction=True)
def test_loading_it_again_submits_nothing_twice(capsys: pytest.CaptureFixture[str]) -> None:
    first = load(capsys)
    ids = {skill["skillName"]: skill["submission"]["id"] for skill in first if skill["submission"]}
    waiting = load(capsys)
    assert {name for name, outcome in outcomes(waiting).items() if outcome == "duplicate"} == set(ids)
    call_command("consume", "--drain")
    capsys.readouterr()
    again = load(capsys)
    assert outcomes(again) == {
        **dict.fromkeys(GOOD | {"offline-dictionary"}, "ended"),
        **dict.fromkeys(("key-backup", "shared-glossary"), "duplicate"),
        "unfinished-draft": "invalid",
    }
    assert {skill["skillName"]: skill["submission"]["id"] for skill in again if skill["submission"]} == ids


@pytest.mark.django_db(transaction=True)
def test_one_line_says_what_was_done(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("load_demo")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1
    assert "11 skills" in lines[0]
    assert "10 created, 1 invalid" in lines[0]
    assert "faults on purpose" in lines[0]


@pytest.mark.django_db(transaction=True)
def test_an_environment_that_accepts_no_files_is_left_out_and_told_so(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.VSKILL_ENVIRONMENTS = {"strict": {"hosts": ["testserver"], "public_url": "http://testserver"}}
    call_command("load_demo")
    assert "left out of 'strict'" in capsys.readouterr().out
    with pytest.raises(CommandError, match="operator allows"):
        call_command("load_demo", "--environment", "strict")
