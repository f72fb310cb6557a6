"""The lines that a skill's page offers for copying, taken from the page and run."""

from __future__ import annotations

import html
import json
import re
import shlex
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from marketplace.install_lines.clients import LABELS
from tests.clients.conftest import APM, CLAUDE, CODEX, HERE, ClientMachine, LiveServer
from tests.clients.test_git import token_to_read
from tests.marketplace.factories import publish_example, skill_md
from tests.page_text import without_inline_tags
from vskill.accounts.audiences import MEMBERS
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
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def commands_of_page(address: str, token: str = "") -> dict[str, str]:
    """Return what a page offers for copying, by the identifiers of the blocks; ``token`` is whose reads it."""
    bearing = {"Authorization": f"Bearer {token}"} if token else {}
    asked = urllib.request.Request(address, headers=bearing)  # noqa: S310 - the server of the test, on loopback
    with urllib.request.urlopen(asked) as answer:  # noqa: S310 - the same
        page = answer.read().decode()
    blocks = re.findall(r'<pre id="([^"]+)"[^>]*>(.*?)</pre>', page, flags=re.DOTALL)
    return {key: html.unescape(re.sub(r"<[^>]+>", "", text)) for key, text in blocks}


@pytest.fixture
def lines(env: WorkerEnv, server: LiveServer) -> dict[str, str]:
    """Return the lines of the page of the older of two versions."""
    publish_example(env, declared_version="1.0.0", body="First.")
    publish_example(env, declared_version="1.1.0", body="Second.")
    return commands_of_page(f"{server.url}/skills/hello-skill?version=1.0.0")


def test_the_line_for_clawhub(
    env: WorkerEnv, server: LiveServer, lines: dict[str, str], machine: ClientMachine
) -> None:
    line = lines["install-clawhub"]
    machine.shell(line, without=("CLAWHUB_REGISTRY", "CLAWHUB_SITE"))
    installed = machine.work / "skills/hello-skill/SKILL.md"
    assert "First." in installed.read_text()

    # As the note says: a site that it can reach comes before the registry that it has used, unless that is named.
    shown = lines_of_page(f"{server.url}/skills/hello-skill")
    assert any("Keep CLAWHUB_REGISTRY set" in one for one in shown)
    with another_site() as (site, asked):
        machine.shell(f"CLAWHUB_SITE={site} npx clawhub update --all", code=1, without=("CLAWHUB_REGISTRY",))
        assert any("hello-skill" in path for path in asked)
        asked.clear()
        kept = line.partition(" ")[0]
        machine.shell(f"export {kept} CLAWHUB_SITE={site}; npx clawhub update --all", without=("CLAWHUB_REGISTRY",))
        assert asked == []
    assert "Second." in installed.read_text()


def test_the_lines_for_skills(lines: dict[str, str], machine: ClientMachine) -> None:
    # Without a terminal the client cannot ask where to install, so that is answered here.
    machine.shell(f"{lines['install-skills']} -a claude-code -y --copy")
    installed = machine.work / ".claude/skills/hello-skill/SKILL.md"
    assert "First." in installed.read_text()
    assert "hello-skill/versions/1.0.0" in machine.shell("npx skills update -p -y")
    assert "First." in installed.read_text()

    machine.shell(f"{lines['follow-skills']} -a claude-code -y --copy")
    assert "Second." in installed.read_text()


def test_the_lines_for_curl(lines: dict[str, str], machine: ClientMachine) -> None:
    assert machine.shell(lines["install-curl"]) == "hello-skill.zip: OK\n"
    assert "First." in machine.shell("unzip -p hello-skill.zip SKILL.md")
    machine.shell("echo more >> hello-skill.zip")
    machine.shell(lines["install-curl"].splitlines()[1], code=1)


def test_the_lines_for_git(lines: dict[str, str], machine: ClientMachine) -> None:
    installed = machine.work / "hello-skill/plugins/hello-skill/skills/hello-skill/SKILL.md"
    for key, said in (("install-git", "First."), ("follow-git", "Second.")):
        machine.shell(f"rm -rf hello-skill; {lines[key]}")
        assert said in installed.read_text()


@pytest.mark.skipif(not CLAUDE.exists(), reason=f"not installed: {CLAUDE} (make claude-code)")
def test_the_lines_for_claude_code(server: LiveServer, lines: dict[str, str], machine: ClientMachine) -> None:
    machine.shell(f"set -e\n{lines['install-claude']}")
    cache = machine.home / ".claude/plugins/cache"
    assert ["First." in one.read_text() for one in cache.rglob("SKILL.md")] == [True]
    plugin = lines["install-claude"].split()[-1]
    update = f"set -e; claude plugin marketplace update {plugin.partition('@')[2]}; claude plugin update {plugin}"
    machine.shell(update)
    assert len([*cache.rglob("SKILL.md")]) == 1

    machine.shell(f"set -e\n{lines['follow-claude']}\n{update}")
    assert {one.parents[2].name: one.read_text().split()[-1] for one in cache.rglob("SKILL.md")}["1.1.0"] == "Second."


@pytest.mark.skipif(not CODEX.exists(), reason=f"not installed: {CODEX} (make codex)")
def test_the_lines_for_codex(server: LiveServer, lines: dict[str, str], machine: ClientMachine) -> None:
    machine.shell(f"set -e\n{lines['install-codex']}")
    cache = machine.home / ".codex/plugins/cache"
    assert ["First." in one.read_text() for one in cache.rglob("SKILL.md")] == [True]

    # As the note says: it takes no second list of that name.
    remove = "codex plugin marketplace remove vskill-hello-skill"
    assert any(one.endswith(remove) for one in lines_of_page(f"{server.url}/skills/hello-skill"))
    machine.shell("codex plugin marketplace upgrade vskill-hello-skill")
    machine.shell(lines["follow-codex"].splitlines()[0], code=1)
    machine.shell(f"set -e\n{remove}\n{lines['follow-codex']}")
    assert "Second." in {one.read_text().split()[-1] for one in cache.rglob("SKILL.md")}


@pytest.mark.skipif(not APM.exists(), reason=f"not installed: {APM} (make apm)")
def test_the_lines_for_apm(lines: dict[str, str], machine: ClientMachine) -> None:
    # It installs for the agents whose folders a project has.
    machine.shell(f"set -e; mkdir .claude\n{lines['install-apm']}")
    installed = machine.work / ".claude/skills/hello-skill/SKILL.md"
    assert "First." in installed.read_text()
    machine.shell("apm update --yes")
    assert "First." in installed.read_text()

    machine.shell(f"set -e\n{lines['follow-apm']}")
    assert "Second." in installed.read_text()


def test_the_lines_for_hosts_of_mcp(server: LiveServer, lines: dict[str, str], machine: ClientMachine) -> None:
    # What always gives the latest version is on no page of another one.
    assert "install-mcp" not in lines
    offered = commands_of_page(f"{server.url}/skills/hello-skill")
    read = json.loads(machine.shell(f"{sys.executable} {HERE / 'read_skills.py'} {offered['install-mcp']}"))
    [uri] = read
    assert any(uri in line for line in lines_of_page(f"{server.url}/skills/hello-skill"))
    if CLAUDE.exists():
        assert connected_to_claude_code(machine, offered["mcp-claude"])
    if CODEX.exists():
        [seen] = connected_to_codex(machine, offered["mcp-codex"])
        assert (seen["serverInfo"]["name"], list(seen["tools"])) == ("vskill", ["search_skills"])
        assert [one["uri"] for one in seen["resources"]] == [uri]


def connected_to_claude_code(machine: ClientMachine, command: str) -> bool:
    """Add a server of MCP to Claude Code, and return whether it says that it is connected."""
    machine.shell(command)
    return "✔ Connected" in machine.shell("claude mcp list")


def connected_to_codex(machine: ClientMachine, command: str) -> list[dict[str, Any]]:
    """Add a server of MCP to Codex, and return what Codex has read of each that it knows.

    Its server for editors tells that without a model, and ends without an answer once there is nothing more to read.
    """
    messages = (
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "test", "version": "1"}}},
        {"method": "initialized"},
        {"id": 2, "method": "mcpServerStatus/list", "params": {}},
    )
    sent = " ".join(shlex.quote(json.dumps(one)) for one in messages)
    told = machine.shell(
        f"set -e\n{command} >/dev/null 2>&1\ncoproc codex app-server 2>/dev/null\n"
        f"printf '%s\\n' {sent} >&${{COPROC[1]}}\n"
        "while read -r line; do [[ $line != '{\"id\":2,'* ]] || break; done <&${COPROC[0]}\n"
        'kill $COPROC_PID\nprintf %s "$line"'
    )
    found: list[dict[str, Any]] = json.loads(told)["result"]["data"]
    return found


def test_the_lines_of_a_private_skill_take_a_token(env: WorkerEnv, server: LiveServer, machine: ClientMachine) -> None:
    publish_example(env, declared_version="1.0.0", body="First.", audience=MEMBERS)
    publish_example(env, declared_version="1.1.0", body="Second.")
    token = token_to_read(env)
    shown = commands_of_page(f"{server.url}/skills/hello-skill?version=1.0.0", token)
    lines = {key.removeprefix("install-"): one for key, one in shown.items() if key.removeprefix("install-") in LABELS}
    assert list(lines) == ["skills", "claude", "codex", "clawhub", "git", "curl"]
    git, fetch = lines["git"].splitlines()
    machine.shell(fetch, code=128)
    lines["skills"] += " -a claude-code -y --copy"
    present = {"claude": CLAUDE.exists(), "codex": CODEX.exists()}
    installed = {
        "skills": ".claude/skills/hello-skill/SKILL.md",
        "claude": "../.claude/plugins/cache/vskill-hello-skill/hello-skill/1.0.0/skills/hello-skill/SKILL.md",
        "codex": "../.codex/plugins/cache/vskill-hello-skill/hello-skill/1.0.0/skills/hello-skill/SKILL.md",
        "clawhub": "skills/hello-skill/SKILL.md",
        "git": "hello-skill/plugins/hello-skill/skills/hello-skill/SKILL.md",
    }
    for key, place in installed.items():
        if present.get(key, True):
            command = lines[key].replace("TOKEN", token)
            # What one of them has told git, the others would know.
            machine.shell(f"rm -f ~/.gitconfig; set -e\n{command}", without=("CLAWHUB_REGISTRY", "CLAWHUB_SITE"))
            assert "First." in (machine.work / place).read_text(), key
    assert machine.shell(lines["curl"].replace("TOKEN", token)) == "hello-skill.zip: OK\n"
    assert git in lines["skills"]
    latest = commands_of_page(f"{server.url}/skills/hello-skill", token)
    bearing = {key: latest[key].replace("TOKEN", token) for key in ("mcp-claude", "mcp-codex")}
    if present["claude"]:
        assert connected_to_claude_code(machine, bearing["mcp-claude"])
    if present["codex"]:
        # Without the token there are none.
        [seen] = connected_to_codex(machine, bearing["mcp-codex"])
        assert [one["name"] for one in seen["resources"]] == ["hello-skill"]


def test_a_skill_that_git_would_change_has_no_line_for_it(env: WorkerEnv, server: LiveServer) -> None:
    publish_example(env, files={"SKILL.md": skill_md("hello-skill", "Hello."), "a/.gitattributes": "* eol=crlf"})
    keys = [key.removeprefix("install-") for key in commands_of_page(f"{server.url}/skills/hello-skill")]
    assert [key for key in keys if key in LABELS] == ["skills", "clawhub", "apm", "curl", "mcp"]


def test_the_lines_of_the_other_pages(lines: dict[str, str], server: LiveServer, machine: ClientMachine) -> None:
    named = ("CLAWHUB_REGISTRY", "CLAWHUB_SITE")
    home = line_that_starts(lines_of_page(f"{server.url}/"), "export CLAWHUB_REGISTRY=")
    assert "hello-skill" in machine.shell(f"{home}\nnpx clawhub search hello", without=named)
    guide = lines_of_page(f"{server.url}/about/api")
    assert "hello-skill" in machine.shell(html.unescape(line_that_starts(guide, "curl -s '")))
    machine.shell(line_that_starts(guide, "CLAWHUB_REGISTRY="), without=named)
    # The others are those of the page, word for word, as tests/marketplace/crawlers says.
    told = "\n".join(lines_of_page(f"{server.url}/llms.txt")).replace("SLUG", "hello-skill").replace("VERSION", "1.0.0")
    given = dict(re.findall("^- (skills|ClawHub): `(.+)`$", told, re.MULTILINE))
    machine.shell(f"{given['skills']} -a claude-code -y --copy")
    machine.shell(given["ClawHub"], without=named)
    for folder in (".claude/skills", "skills"):
        assert "First." in (machine.work / folder / "hello-skill/SKILL.md").read_text()
