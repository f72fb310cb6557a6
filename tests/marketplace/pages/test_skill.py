"""The pages of one skill, read through the whole stack as a browser reads them."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from marketplace.catalog import delete_skill, quarantine_skill, quarantine_version, rename_skill, yank_version
from marketplace.models import SkillVersion
from marketplace.pages import skill as skill_page
from marketplace.skills import git_versions
from tests.marketplace.pages.page_factory import contract, finding, publish
from tests.page_text import without_inline_tags
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)
put = sync_to_async(publish)


async def page(path: str, status: int = 200) -> str:
    response = await AsyncClient().get(path)
    assert response.status_code == status, response.content.decode()[:500]
    return response.content.decode()


async def test_a_skill_shows_its_verdict_and_apart_from_it_what_it_asks_for(env: WorkerEnv) -> None:
    await put(env, verdict="notes", capabilities=("shell_execution", "network_egress"), findings=(finding(),))
    shown = await page("/skills/release-notes")
    for words in ("Checked, with notes", "Runs commands", "Uses the network", "Draft release notes", "github.com/acme"):
        assert words in shown


async def test_what_a_skill_asks_for_is_what_its_contract_says_and_what_engines_found_besides(env: WorkerEnv) -> None:
    engines = ("shell_execution", "network_egress", "mcp_tools_detected")
    await put(env, capabilities=engines, contract=contract())
    asked = (await page("/skills/release-notes")).partition("Asks for")[2].partition("</dl>")[0]
    labels = [label.strip() for label in re.findall(r"</svg>([^<]+)</li>", asked)]
    # Of the network the contract says more.
    assert labels == ["Reads files", "Sends data", "Runs commands or code", "Brings tools"]


async def test_a_skill_shows_how_each_client_installs_exactly_this_version(env: WorkerEnv) -> None:
    await put(env, version="1.1.0")
    await put(env, version="1.2.0", text="New.")
    registry = env.public_url
    for version, query in (("1.2.0", ""), ("1.1.0", "?version=1.1.0")):
        digest = (await SkillVersion.objects.aget(version=version)).zip_sha256
        shown = without_inline_tags(await page(f"/skills/release-notes{query}"))
        for line in (
            f"npx skills add {registry}/skills/release-notes/versions/{version}",
            f"claude plugin marketplace add {registry}/skills/release-notes/versions/{version}/marketplace.json",
            f"codex plugin marketplace add {registry}/git/acme/release-notes.git --ref {version}",
            f"CLAWHUB_REGISTRY={registry} npx clawhub install release-notes --version {version}",
            f"apm install 'acme/release-notes#{version}'",
            f"git clone --branch {version} {registry}/git/acme/release-notes.git",
            f"curl -fsSL -o release-notes.zip {registry}/skills/release-notes/download/{version}.zip",
            f"echo '{digest}  release-notes.zip' | sha256sum -c",
        ):
            assert line in shown
        assert shown.count(f"Version {version}") == 7
        # What takes no number is on no page of an older version.
        assert (f"{registry}/mcp" in shown) == (not query)
        assert shown.count("mcp add") == (0 if query else 2)
        # Later versions are one step away.
        for line in (f"npx skills add {registry}/skills/release-notes<", "apm install 'acme/release-notes#>=1.2.0'"):
            assert line in shown


async def test_no_client_is_led_to_a_version_that_is_not_offered_to_it(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_versions, "MOST_VERSIONS", 1)
    for version in ("2.0.0", "1.0.0", "1.1.0"):
        await put(env, version=version, text=version)
    everything = ["skills", "claude", "codex", "clawhub", "apm", "git", "curl"]
    by_archives = ["skills", "clawhub", "apm", "curl"]

    async def clients(query: str) -> list[str]:
        return re.findall(r'<pre id="install-(\w+)"', await page(f"/skills/release-notes{query}"))

    # The repository has tags of the latest version and of the newest one.
    assert await clients("") == [*everything, "mcp"]
    assert await clients("?version=1.1.0") == everything
    assert await clients("?version=1.0.0") == by_archives
    lists = AsyncClient().get("/skills/release-notes/versions/1.0.0/marketplace.json")
    assert (await lists).status_code == 409
    advertised = (await AsyncClient().get("/git/acme/release-notes/info/refs?service=git-upload-pack")).content.decode()
    assert re.findall(r"refs/tags/(\S+)", advertised) == ["2.0.0", "1.1.0"]

    await sync_to_async(yank_version)(env, "release-notes", "1.1.0", actor="test", reason="broken")
    assert await clients("?version=1.1.0") == ["skills", "clawhub", "curl"]
    await put(env, version="3.0.0", verdict="held_high", text="Doubtful.")
    assert await clients("") == ["skills", "claude", "codex", "clawhub", "git", "curl", "mcp"]
    # Hosts of MCP show no warning.
    assert "mcp add" not in await page("/skills/release-notes")


async def test_the_address_of_a_version_for_clients_leads_people_to_its_page(env: WorkerEnv) -> None:
    await put(env, version="1.0.0-rc.1")
    answer = await AsyncClient().get("/skills/release-notes/versions/1.0.0-rc.1")
    assert (answer.status_code, answer.headers["Location"]) == (301, "/skills/release-notes?version=1.0.0-rc.1")
    await page(answer.headers["Location"])


async def test_a_skill_shows_its_files_with_a_mark_each(env: WorkerEnv) -> None:
    unread = finding(kind="coverage", file="assets/data.bin", line=None, title="Binary file")
    files = {"scripts/run.sh": b"echo hi\n", "assets/data.bin": b"\0\1"}
    await put(env, files=files, findings=(finding(), unread))
    shown = await page("/skills/release-notes")
    rows = {row.split("</a>")[0].rsplit(">", 1)[-1]: row for row in shown.split('id="files"')[1].split("<tr>")[2:5]}
    assert "1 finding" in rows["SKILL.md"]
    assert "No known pattern" in rows["scripts/run.sh"]
    assert "executable" in rows["scripts/run.sh"]
    assert "Not scanned" in rows["assets/data.bin"]


async def test_a_file_that_one_engine_left_and_another_read_is_called_read(env: WorkerEnv) -> None:
    engines = tuple({"name": name, "version": "1", "status": "partial"} for name in ("skilltotal", "vskill"))
    unread = [("skilltotal", "a.cs"), ("skilltotal", "b.bin"), ("vskill", "b.bin")]
    notes = tuple(finding(kind="coverage", engine=engine, file=file, why=f"Why {file}") for engine, file in unread)
    await put(env, files={"a.cs": b"class A {}\n", "b.bin": b"\0\1"}, engines=engines, findings=notes)
    shown = await page("/skills/release-notes")
    rows = {row.split("</a>")[0].rsplit(">", 1)[-1]: row for row in shown.split('id="files"')[1].split("<tr>")[2:5]}
    assert "No known pattern" in rows["a.cs"]
    assert "Not scanned" in rows["b.bin"]
    for below in ("", "/scan"):
        shown = await page(f"/skills/release-notes{below}")
        assert "1 file was read by no engine." in shown
        rows_of_table = shown.split("Not read by every engine")[1].partition("</table>")[0].split("<tr>")
        table = [re.sub("<[^>]+>", " ", row).split() for row in rows_of_table]
        assert table[1:3] == [
            ["b.bin", "not", "read", "not", "read", "Why", "b.bin"],
            ["a.cs", "not", "read", "read", "Why", "a.cs"],
        ]


async def test_without_engines_no_file_is_called_checked(env: WorkerEnv) -> None:
    await put(env, engines=(), verdict="")
    shown = await page("/skills/release-notes")
    assert "No verdict recorded" in shown
    assert "No known pattern" not in shown
    assert "Which engines ran is not recorded" in shown


async def test_a_skill_shows_where_it_came_from(env: WorkerEnv) -> None:
    await put(env)
    version = await SkillVersion.objects.aget()
    shown = await page("/skills/release-notes")
    for fact in (version.commit_sha, version.content_hash, version.zip_sha256, "skills/release-notes", "MIT"):
        assert fact in shown


async def test_a_repository_that_is_no_web_address_is_text_and_no_link(env: WorkerEnv) -> None:
    await put(env, repo_url="file:///srv/demo/skills")
    shown = await page("/skills/release-notes")
    assert "file:///srv/demo/skills" in shown
    assert 'href="file:' not in shown


async def test_hostile_text_never_becomes_markup(env: WorkerEnv) -> None:
    script = "<script>alert(1)</script>"
    await put(
        env,
        description=f"Good {script}",
        text=f"Hello {script} <img src=x onerror=alert(1)> [x](javascript:alert(1))",
        findings=(finding(title=script, excerpt=script, why=script, advice=script),),
    )
    for path in (
        "/skills/release-notes",
        "/skills/release-notes/scan",
        "/skills/release-notes/files/SKILL.md",
        "/skills",
    ):
        shown = await page(path)
        assert "<script>alert" not in shown
        assert "<img src=x" not in shown
        assert 'href="javascript:' not in shown


async def test_a_former_name_leads_for_good_to_the_same_page_under_the_present_one(env: WorkerEnv) -> None:
    await put(env)
    await sync_to_async(rename_skill)(env, "release-notes", "changelogs", actor="me", reason="clearer")
    for below in ("", "/scan", "/files/SKILL.md"):
        response = await AsyncClient().get(f"/skills/release-notes{below}?version=0.0.1")
        assert response.status_code == 301
        assert response["Location"] == f"/skills/changelogs{below}?version=0.0.1"
        assert (await AsyncClient().get(response["Location"])).status_code == 200


@pytest.mark.parametrize("withdraw", [quarantine_skill, delete_skill])
async def test_a_withdrawn_skill_is_gone_from_every_page(env: WorkerEnv, withdraw: Any) -> None:
    await put(env)
    await sync_to_async(withdraw)(env, "release-notes", actor="me", reason="why")
    for below in ("", "/scan", "/files/SKILL.md"):
        await page(f"/skills/release-notes{below}", 404)
    assert "/skills/release-notes" not in await page("/skills") + await page("/")
    await page("/publishers/acme", 404)


async def test_a_yanked_version_is_shown_by_its_number_with_a_warning(env: WorkerEnv) -> None:
    await put(env, version="1.0.0", text="one")
    await put(env, version="1.1.0", text="two")
    await sync_to_async(yank_version)(env, "release-notes", "1.1.0", actor="me", reason="it deletes the changelog")
    assert "1.0.0" in await page("/skills/release-notes")
    shown = await page("/skills/release-notes?version=1.1.0")
    assert "was withdrawn" in shown
    assert "it deletes the changelog" in shown
    assert "yanked" in shown


async def test_a_skill_whose_every_version_is_yanked_is_shown_with_the_warning(env: WorkerEnv) -> None:
    await put(env, version="1.0.0")
    await sync_to_async(yank_version)(env, "release-notes", "1.0.0", actor="me", reason="broken")
    assert "was withdrawn" in await page("/skills/release-notes")
    assert "/skills/release-notes" not in await page("/skills")


async def test_a_version_in_quarantine_is_named_and_cannot_be_opened(env: WorkerEnv) -> None:
    await put(env, version="1.0.0", text="one")
    await put(env, version="1.1.0", text="two")
    await sync_to_async(quarantine_version)(env, "release-notes", "1.1.0", actor="me", reason="harm")
    shown = await page("/skills/release-notes")
    assert "in quarantine" in shown
    assert "?version=1.1.0" not in shown
    await page("/skills/release-notes?version=1.1.0", 404)


async def test_an_older_version_says_which_is_the_latest_and_its_links_stay_with_it(env: WorkerEnv) -> None:
    await put(env, version="1.0.0", text="old words")
    await put(env, version="1.1.0", text="new words")
    shown = await page("/skills/release-notes?version=1.0.0")
    assert "The latest is 1.1.0" in shown
    assert "old words" in shown
    assert "/skills/release-notes/files/SKILL.md?version=1.0.0" in shown
    assert "old words" in await page("/skills/release-notes/files/SKILL.md?version=1.0.0")


@pytest.mark.parametrize("slug", ["nothing-here", "alias:x", "%00", "a%20b", "-", "x" * 300])
async def test_a_name_that_nothing_has_is_not_found(env: WorkerEnv, slug: str) -> None:
    assert "Nothing is published here" in await page(f"/skills/{slug}", 404)


async def test_the_scan_shows_every_finding_and_the_engines_with_their_versions(env: WorkerEnv) -> None:
    await put(env, findings=tuple(finding(ruleId=f"R-{n}", line=n) for n in range(1, 9)))
    shown = await page("/skills/release-notes/scan")
    for number in range(1, 9):
        assert f"R-{number}" in shown
    for words in ("skilltotal", "0.84.0", "structure", "Read all of it", "/files/SKILL.md#L6", "Why it matters"):
        assert words in shown
    short = await page("/skills/release-notes")
    assert "R-5" in short
    assert "R-6" not in short
    assert "All 8 findings" in short


async def test_links_of_the_text_lead_to_files_of_the_same_version_or_to_the_commit(env: WorkerEnv) -> None:
    text = "See [guide](references/guide.md), [gone](references/gone.md) and [out](../../etc/passwd)."
    await put(env, version="1.0.0", text=text, files={"references/guide.md": b"hi"})
    await put(env, version="1.1.0", text="new")
    shown = await page("/skills/release-notes?version=1.0.0")
    text_part = shown.split('class="prose"')[1].split("</section>")[0]
    assert 'href="/skills/release-notes/files/references/guide.md?version=1.0.0"' in text_part
    assert "/etc/passwd" in re.findall(r'href="https://github.com/acme/skills/blob/[0-9a-f]{40}([^"]+)"', text_part)
    assert text_part.count("href=") == 2


async def test_a_text_is_rendered_once_however_often_its_page_is_asked_for(env: WorkerEnv) -> None:
    await put(env, text="Look **here**.\n")
    rendered_before = skill_page._rendered.cache_info().misses
    for _ in range(3):
        assert "<strong>here</strong>" in await page("/skills/release-notes")
    assert skill_page._rendered.cache_info().misses == rendered_before + 1


async def test_the_text_is_shown_as_formatted_text_below_the_headings_of_the_page(env: WorkerEnv) -> None:
    await put(env, text="# Title\n\nDo it **well**.\n")
    shown = await page("/skills/release-notes")
    assert "<strong>well</strong>" in shown
    assert shown.count("<h1") == 1


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
async def test_the_archive_that_the_page_names_is_the_one_that_its_digest_says(env: WorkerEnv, kind: str) -> None:
    await put(env, version="1.2.0")
    version = await SkillVersion.objects.aget()
    (href,) = set(
        re.findall(rf'href="(/skills/release-notes/download/[^"]+\.{kind})"', await page("/skills/release-notes"))
    )
    # Not counted: a count is written after the response, and could collide with the emptying of the tables.
    answer = await AsyncClient().get(href, headers={"X-Skills-Update-Check": "1"})
    assert answer.status_code == 200
    assert hashlib.sha256(answer.content).hexdigest() == (version.zip_sha256 if kind == "zip" else version.tar_sha256)


async def test_the_plain_file_that_a_file_page_leads_to_is_its_bytes(env: WorkerEnv) -> None:
    await put(env, files={"a b.txt": b"x\r\ny"})
    shown = (await page("/skills/release-notes/files/a b.txt")).replace("&amp;", "&")
    (href,) = re.findall(r'<a href="([^"]+)">Plain file</a>', shown)
    assert (await AsyncClient().get(href)).content == b"x\r\ny"
