"""What is published of an author who followed the specification, the reference validator accepts."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from asgiref.sync import async_to_sync, sync_to_async

from marketplace.models import SkillVersion
from submissions.demo.repository import FOLDER
from tests.git_factory import make_repository, skill_md
from tests.submissions.front_door import drain, submitted
from tests.submissions.reference_validator import notes, refusals
from tests.submissions.uploads.uploading import FILES, publish_form, publish_json, token_for
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)

HONEST: Final = ("colour-contrast", "csv-tidy", "link-check", "meeting-minutes", "release-notes", "sql-review")
ALL_FIELDS: Final = (
    "---\nname: all-fields\ndescription: Has every field.\nlicense: MIT\ncompatibility: Needs git.\n"
    "metadata:\n  author: acme\n  version: '1.2'\nallowed-tools: Bash(git:*) Read\n---\n\nText.\n"
)
# What an author may write who did not follow it, and a word of what the validator says; all of it is published.
DEPARTURES: Final = {
    "a field of its own": ("---\nname: own-field\ndescription: x\nversion: 1.0.0\n---\n", "Unexpected fields"),
    "capitals": ("---\nname: Own-Name\ndescription: x\n---\n", "lowercase"),
    "too long": (f"---\nname: too-long\ndescription: {'x' * 1025}\n---\n", "exceeds 1024"),
    "a flow map": ("---\nname: flow-map\ndescription: x\nmetadata: {a: b}\n---\n", "Invalid YAML"),
}


async def published_from(env: WorkerEnv, folder: Path, files: dict[str, bytes | str]) -> list[SkillVersion]:
    await submitted(env, f"file://{make_repository(folder / 'r.git', files)}")
    await drain(env)
    return [one async for one in SkillVersion.objects.select_related("skill")]


async def test_the_demo_and_every_field_are_accepted_as_they_are_published(env: WorkerEnv, tmp_path: Path) -> None:
    demo = FOLDER / "skills"
    files: dict[str, bytes | str] = {
        str(path.relative_to(demo)): path.read_bytes()
        for name in HONEST
        for path in (demo / name).rglob("*")
        if path.is_file()
    }
    found = await published_from(env, tmp_path, {**files, "all-fields/SKILL.md": ALL_FIELDS})

    assert {one.name for one in found} == {*HONEST, "all-fields"}
    for version in found:
        assert (await sync_to_async(refusals)(version), notes(version)) == ([], []), version.name


def test_what_is_uploaded_is_accepted_as_it_is_published(env: WorkerEnv) -> None:
    token = token_for(env)
    publish_form(token)
    publish_json(token, {**FILES, "SKILL.md": ALL_FIELDS.encode()}, slug="all-fields")
    async_to_sync(drain)(env)
    found = list(SkillVersion.objects.select_related("skill"))
    assert len(found) == 2
    assert [(refusals(one), notes(one)) for one in found] == [([], []), ([], [])]


async def test_what_the_validator_refuses_has_a_note_here(env: WorkerEnv, tmp_path: Path) -> None:
    files: dict[str, bytes | str] = {f"{number}/SKILL.md": text for number, (text, _) in enumerate(DEPARTURES.values())}
    found = {one.name: one for one in await published_from(env, tmp_path, files)}
    assert len(found) == len(DEPARTURES)
    for text, word in DEPARTURES.values():
        name = text.splitlines()[1].removeprefix("name: ")
        said = await sync_to_async(refusals)(found[name])
        assert any(word in one for one in said), (name, said)
        assert notes(found[name]), name


async def test_a_skill_is_refused_in_a_folder_of_another_name(env: WorkerEnv, tmp_path: Path) -> None:
    [version] = await published_from(env, tmp_path, {"s/SKILL.md": skill_md("pdf-tools")})
    assert await sync_to_async(refusals)(version) == []
    version.name = "another"
    said = await sync_to_async(refusals)(version)
    assert len(said) == 1
    assert "must match" in said[0]
