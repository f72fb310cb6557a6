"""The lines that a skill's page offers for copying, taken from the page and run."""

from __future__ import annotations

import html
import json
import re
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.clients.conftest import CLAUDE, CODEX, ClientMachine, LiveServer
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


@contextmanager
def another_site() -> Iterator[tuple[str, list[str]]]:
    """Serve a site on loopback that names itself as the registry and has no skill; it lists what it was asked for."""
    asked: list[str] = []

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.path == "/.well-known/clawhub.json"
            if not known:
                asked.append(self.path)
            body = json.dumps({"apiBase": f"http://{self.headers['Host']}"}).encode() if known else b"Not found"
            self.send_response(200 if known else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def lines(env: WorkerEnv, server: LiveServer) -> list[str]:
    """Return the lines of the page of a skill that has two versions."""
    publish_example(env, declared_version="1.0.0", body="First.")
    publish_example(env, declared_version="1.1.0", body="Second.")
    return lines_of_page(f"{server.url}/skills/hello-skill")


def test_the_line_for_clawhub(env: WorkerEnv, lines: list[str], machine: ClientMachine) -> None:
    line = line_that_starts(lines, "CLAWHUB_REGISTRY=")
    machine.shell(line, without=("CLAWHUB_REGISTRY", "CLAWHUB_SITE"))
    installed = machine.work / "skills/hello-skill/SKILL.md"
    assert "Second." in installed.read_text()

    # As the note says: a site that it can reach comes before the registry that it has used, unless that is named.
    assert any("Keep CLAWHUB_REGISTRY set" in one for one in lines)
    publish_example(env, declared_version="1.2.0", body="Third.")
    with another_site() as (site, asked):
        machine.shell(f"CLAWHUB_SITE={site} npx clawhub update --all", code=1, without=("CLAWHUB_REGISTRY",))
        assert any("hello-skill" in path for path in asked)
        asked.clear()
        kept = line.partition(" ")[0]
        machine.shell(f"export {kept} CLAWHUB_SITE={site}; npx clawhub update --all", without=("CLAWHUB_REGISTRY",))
        assert asked == []
    assert "Third." in installed.read_text()


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


@pytest.mark.skipif(not CODEX.exists(), reason=f"not installed: {CODEX} (make codex)")
def test_the_lines_for_codex(lines: list[str], machine: ClientMachine) -> None:
    for start in ("codex plugin marketplace add", "codex plugin add"):
        machine.shell(line_that_starts(lines, start))
    cache = machine.home / ".codex/plugins/cache"
    assert ["Second." in one.read_text() for one in cache.rglob("SKILL.md")] == [True]


def test_a_skill_that_git_would_change_has_no_line_for_it(env: WorkerEnv, server: LiveServer) -> None:
    publish_example(env, files={"SKILL.md": skill_md("hello-skill", "Hello."), "a/.gitattributes": "* eol=crlf"})
    lines = lines_of_page(f"{server.url}/skills/hello-skill")
    assert [line for line in lines if line.startswith(("git ", "claude ", "codex ", "npx skills"))] == [
        f"npx skills add {server.url}/skills/hello-skill"
    ]


def test_the_lines_of_the_other_pages(lines: list[str], server: LiveServer, machine: ClientMachine) -> None:
    named = ("CLAWHUB_REGISTRY", "CLAWHUB_SITE")
    home = line_that_starts(lines_of_page(f"{server.url}/"), "export CLAWHUB_REGISTRY=")
    assert "hello-skill" in machine.shell(f"{home}\nnpx clawhub search hello", without=named)
    guide = lines_of_page(f"{server.url}/about/api")
    assert "hello-skill" in machine.shell(html.unescape(line_that_starts(guide, "curl -s '")))
    machine.shell(line_that_starts(guide, "CLAWHUB_REGISTRY="), without=named)
    told = lines_of_page(f"{server.url}/llms.txt")
    written = [line.strip("- `").replace("SLUG", "hello-skill") for line in told if line.startswith("- `")]
    [skills] = [line for line in written if line.startswith("npx skills add") and "/skills/" in line]
    [clawhub] = [line for line in written if line.startswith("CLAWHUB_REGISTRY=")]
    machine.shell(f"{skills} -a claude-code -y --copy")
    machine.shell(clawhub, without=named)
    for folder in (".claude/skills", "skills"):
        assert "Second." in (machine.work / folder / "hello-skill/SKILL.md").read_text()
