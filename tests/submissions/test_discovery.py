"""Listing a repository: what is fetched for it, what counts, and that the event loop stays free."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from submissions.discovery import NoSkillFound, discover
from tests.git_factory import git, make_repository, skill_md
from tests.loop_steps import loop_steps
from tests.submissions.front_door import repository, skills
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)
SKILLS = 3000

pytestmark = pytest.mark.django_db(transaction=True)


def many_skills() -> dict[str, bytes | str]:
    return {f"skills/s{number:04}/SKILL.md": skill_md(f"s{number:04}") for number in range(SKILLS)}


async def test_no_step_of_the_loop_looks_at_every_skill(env: WorkerEnv, tmp_path: Path) -> None:
    url = repository(tmp_path, many_skills())
    git(tmp_path / "repository.git", "config", "uploadpack.allowFilter", "true")

    with loop_steps() as steps:
        found = await discover(env, url)

    assert len(found.skills) == SKILLS
    assert steps.most_calls < SKILLS, steps.busiest


async def test_a_step_that_looks_at_every_skill_would_be_seen(env: WorkerEnv, tmp_path: Path) -> None:
    found = await discover(env, repository(tmp_path, skills(*(f"s{number}" for number in range(30)))))

    with loop_steps() as steps:
        for skill in found.skills:
            len(skill.name)

    assert steps.most_calls >= 30


async def test_one_folder_is_listed_whatever_lies_beside_it(env: WorkerEnv, tmp_path: Path) -> None:
    others: dict[str, bytes | str] = {f"data/{number}": "x" for number in range(6830)}
    url = repository(tmp_path, {**skills("skills/one", "skills/two", "other/three"), **others})

    assert [skill.path for skill in (await discover(env, url)).skills] == ["other/three", "skills/one", "skills/two"]
    assert [skill.path for skill in (await discover(env, url, path="skills")).skills] == ["skills/one", "skills/two"]
    assert [skill.path for skill in (await discover(env, url, path="skills/one/SKILL.md")).skills] == ["skills/one"]
    with pytest.raises(NoSkillFound, match="no skill in the folder 'data'"):
        await discover(env, url, path="data")


async def test_a_folder_in_the_address_and_one_beside_it_are_one_in_the_other(env: WorkerEnv, tmp_path: Path) -> None:
    made = make_repository(tmp_path / "r.git", skills("skills/one", "skills/two", "other/three"))
    here = replace(env, policy=replace(env.policy, source_rewrites=(("https://github.com/a/b", f"file://{made}"),)))
    page = "https://github.com/a/b/tree/main/skills"

    assert [skill.path for skill in (await discover(here, page)).skills] == ["skills/one", "skills/two"]
    assert [skill.path for skill in (await discover(here, page, path="skills/two")).skills] == ["skills/two"]
    with pytest.raises(NoSkillFound, match="is not in 'skills', which the address names"):
        await discover(here, page, path="other/three")


async def test_the_digest_of_a_skill_depends_on_its_own_files_alone(env: WorkerEnv, tmp_path: Path) -> None:
    files: dict[str, bytes | str] = {**skills("a", "a-b", "b"), "a/b/x": "x", "a0": "y", "SKILL.md": skill_md("root")}
    everything = await discover(env, repository(tmp_path, files))
    # The neighbours of a/ in the order of paths are a-b/ and a0.
    fewer: dict[str, bytes | str] = {**skills("a"), "a/b/x": "x"}
    alone = await discover(env, repository(tmp_path, fewer, "alone"))

    digests = {skill.path: skill.source_digest for skill in everything.skills}
    assert digests["a"] == alone.skills[0].source_digest
    assert len(set(digests.values())) == 4
    assert all(len(digest) == 64 for digest in digests.values())
