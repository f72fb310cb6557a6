"""The lines that a skill's page offers for copying, taken from the page and run."""

from __future__ import annotations

import re
import urllib.request

import pytest

from tests.clients.conftest import CLAUDE, ClientMachine, LiveServer
from tests.marketplace.factories import publish_example, skill_md
from tests.page_text import without_inline_tags
from vskill.environments import WorkerEnv


def lines_of_page(address: str) -> list[str]:
    """Return the text of a page, line by line, as a browser shows it."""
    with urllib.request.urlopen(address) as answer:  # noqa: S310 - the server of the test, on loopback
        page = without_inline_tags(answer.read().decode())
    return [line.strip() for line in re.sub(r"<[^>]+>", "\n", page).splitlines()]


def line_that_starts(lines: list[str], *starts: str) -> str:
    [line] = {line for line in lines if line.startswith(starts)}
    return line


@pytest.fixture
def lines(env: WorkerEnv, server: LiveServer) -> list[str]:
    """Return the lines of the page of a skill that has two versions."""
    publish_example(env, declared_version="1.0.0", body="First.")
    publish_example(env, declared_version="1.1.0", body="Second.")
    return lines_of_page(f"{server.url}/skills/hello-skill")


def test_the_line_for_clawhub(lines: list[str], machine: ClientMachine) -> None:
    line = line_that_starts(lines, "CLAWHUB_REGISTRY=")
    machine.shell(line, without=("CLAWHUB_REGISTRY", "CLAWHUB_SITE"))
    assert "Second." in (machine.work / "skills/hello-skill/SKILL.md").read_text()


def test_the_line_for_skills(lines: list[str], machine: ClientMachine) -> None:
    # Without a terminal the client cannot ask where to install, so that is answered here.
    machine.shell(f"{line_that_starts(lines, 'npx skills add')} -a claude-code -y --copy")
    assert "Second." in (machine.work / ".claude/skills/hello-skill/SKILL.md").read_text()


def test_the_lines_for_curl(lines: list[str], machine: ClientMachine) -> None:
    download, check = line_that_starts(lines, "curl "), line_that_starts(lines, "echo '")
    assert "OK" in machine.shell(f"{download}\n{check}")
    machine.shell("echo more >> hello-skill.zip")
    machine.shell(check, code=1)


def test_the_line_for_git(lines: list[str], machine: ClientMachine) -> None:
    machine.shell(line_that_starts(lines, "git clone"))
    assert "Second." in (machine.work / "hello-skill/plugins/hello-skill/skills/hello-skill/SKILL.md").read_text()


@pytest.mark.skipif(not CLAUDE.exists(), reason=f"not installed: {CLAUDE} (make claude-code)")
def test_the_lines_for_claude_code(lines: list[str], machine: ClientMachine) -> None:
    for start in ("claude plugin marketplace add", "claude plugin install"):
        machine.shell(line_that_starts(lines, start))
    cache = machine.home / ".claude/plugins/cache"
    assert ["Second." in one.read_text() for one in cache.rglob("SKILL.md")] == [True]


def test_a_skill_that_git_would_change_has_no_line_for_it(env: WorkerEnv, server: LiveServer) -> None:
    publish_example(env, files={"SKILL.md": skill_md("hello-skill", "Hello."), "a/.gitattributes": "* eol=crlf"})
    lines = lines_of_page(f"{server.url}/skills/hello-skill")
    assert [line for line in lines if line.startswith(("git ", "claude ", "npx skills"))] == [
        f"npx skills add {server.url}/skills/hello-skill"
    ]
