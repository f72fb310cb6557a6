"""What changes or is lost between two steps of a submission: nothing is published on the strength of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from django.test import override_settings

from marketplace.artifacts.archives import Archive, Member, build_zip
from marketplace.models import SkillVersion
from marketplace.skills import publication
from marketplace.skills.blocklist import BlockKind, add_block
from submissions.operations import approve
from submissions.pipeline.process import process_submission
from submissions.pipeline.run import Run
from submissions.source import git_process
from submissions.source.errors import GitUnavailable
from submissions.states import State
from submissions.store.evidence import all_evidence
from submissions.store.queries import get_submission, history
from submissions.store.records import Submission
from submissions.store.transitions import touch, transition
from submissions.verification.engines.base import Engine, EngineResult
from submissions.verification.packages import SkillPackage
from tests.git_factory import commit, skill_md
from tests.submissions.factories import make_submission
from tests.submissions.front_door import EVIL, repository, skills, submitted_one, worked_off
from vskill.environments import WorkerEnv, get_environment
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.threads import readers, writers
from vskill.worker_context import run_with_worker_env

pytestmark = pytest.mark.django_db(transaction=True)

HARMLESS = skill_md("key-helper", "Helps with keys.")
TWO_TIERS = {"source_file_roots": ["/"], "tier2_engines": ["skilltotal"]}


def _environments(policy: dict[str, Any]) -> dict[str, Any]:
    return {"default": {"hosts": ["testserver"], "policy": policy}}


async def _approved(env: WorkerEnv, folder: Path) -> Submission:
    submission = await submitted_one(env, repository(folder, {"key-helper/SKILL.md": EVIL}))
    assert (await worked_off(env, submission)).state is State.ON_HOLD
    return await writers.run(approve, env, submission.id, actor="operator", reason="a training example")


async def test_findings_that_are_lost_before_publication_are_found_again_and_not_taken_for_none(
    env: WorkerEnv, tmp_path: Path
) -> None:
    approved = await _approved(env, tmp_path)
    await KVNamespace(KVEntry, env).delete(f"scan:{approved.id}:skilltotal")
    ended = await worked_off(env, approved)

    assert ended.state is State.ON_HOLD
    assert State.RESCAN_REQUIRED in [step.to_state for step in await readers.run(history, env, approved.id)]
    assert await SkillVersion.objects.acount() == 0
    assert {one.engine for one in await all_evidence(env, approved.id)} == {"structure", "skilltotal", "vskill"}


async def test_an_approval_does_not_outlast_the_content_that_it_was_given_for(env: WorkerEnv, tmp_path: Path) -> None:
    approved = await _approved(env, tmp_path)
    commit(tmp_path / "repository.git", {"key-helper/SKILL.md": HARMLESS})
    # The host no longer gives the old commit, so that the newest one is all that can be fetched.
    await writers.run(touch, env, approved, {"commitSha": "0" * 40})
    published = await worked_off(env, approved)

    assert published.state is State.PUBLISHED
    version = await SkillVersion.objects.aget()
    assert version.verdict == "clear"
    assert "operator" not in version.verdict_summary


async def test_content_that_is_blocked_after_its_approval_is_held_at_once_with_the_reason(
    env: WorkerEnv, tmp_path: Path
) -> None:
    approved = await _approved(env, tmp_path)
    content = approved.text("contentHash")
    await writers.run(add_block, env, BlockKind.CONTENT, content, actor="operator", reason="stolen")
    held = await run_with_worker_env(env, process_submission, approved.id)

    assert held.state is State.ON_HOLD
    assert "stolen" in held.text("reason")
    assert held.text("verdict") == approved.text("verdict")


@pytest.mark.parametrize(("what", "ends"), [("gone", State.TIER1_FAILED), ("blocked", State.BLOCKED)])
@override_settings(VSKILL_ENVIRONMENTS=_environments(TWO_TIERS))
async def test_a_source_that_is_lost_before_the_second_tier_ends_as_before_the_first(
    what: str, ends: State, tmp_path: Path
) -> None:
    env = get_environment("default")
    submission = await submitted_one(env, repository(tmp_path, skills("one")))
    for state in (State.TIER1_SCANNING, State.TIER2_SCANNING):
        submission = await writers.run(
            transition, env, submission, state, reason="", actor="verification", trigger="test"
        )
    if what == "gone":
        (tmp_path / "repository.git").rename(tmp_path / "elsewhere")
    else:
        url = submission.text("repoUrl")
        await writers.run(add_block, env, BlockKind.REPO, url, actor="operator", reason="asked for by its owner")

    assert (await run_with_worker_env(env, process_submission, submission.id)).state is ends


async def test_a_source_that_the_policy_no_longer_allows_is_refused_with_the_reason(tmp_path: Path) -> None:
    with override_settings(VSKILL_ENVIRONMENTS=_environments({"source_file_roots": ["/"]})):
        submission = await submitted_one(get_environment("default"), repository(tmp_path, skills("one")))
    with override_settings(VSKILL_ENVIRONMENTS=_environments({})):
        ended = await run_with_worker_env(get_environment("default"), process_submission, submission.id)

    assert ended.state is State.TIER1_FAILED
    assert "folders that the operator allows" in ended.text("reason")


async def test_a_machine_without_git_refuses_nobody(
    env: WorkerEnv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submission = await submitted_one(env, repository(tmp_path, skills("one")))
    monkeypatch.setattr(git_process, "SEARCH_PATH", str(tmp_path / "empty"))
    with pytest.raises(GitUnavailable):
        await run_with_worker_env(env, process_submission, submission.id)
    monkeypatch.undo()

    assert (await get_submission(env, submission.id)).state is State.TIER1_SCANNING
    assert (await worked_off(env, submission)).state is State.PUBLISHED


async def test_archives_are_built_before_anybody_waits_for_the_lock_of_the_publication(
    env: WorkerEnv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked: list[bool] = []

    def build(members: list[Member]) -> Archive:
        locked.append(connections[env.database].in_atomic_block)
        return build_zip(members)

    monkeypatch.setattr(publication, "build_zip", build)
    submission = await submitted_one(env, repository(tmp_path, skills("one")))

    assert (await worked_off(env, submission)).state is State.PUBLISHED
    assert locked == [False]


class _Patient(Engine):
    name = "patient"

    @property
    def version(self) -> str:
        return "1"

    def command(self, tree: Path) -> Sequence[str]:
        return ["/bin/sleep", "60"]

    def parse(self, output: bytes) -> EngineResult:
        raise ValueError("it is never heard")


class _Broken(_Patient):
    name = "broken"

    def command(self, tree: Path) -> Sequence[str]:
        raise RuntimeError("a mistake of ours")


async def test_no_engine_goes_on_in_a_folder_that_another_one_s_failure_gives_up(
    env: WorkerEnv, tmp_path: Path
) -> None:
    submission = await writers.run(make_submission, env, State.TIER1_SCANNING)
    run = Run(env, submission, tmp_path, last_attempt=False, slots=None)
    package = SkillPackage(tmp_path, (), "0" * 64, "one", "One.", "", "", {}, "", "")
    before = asyncio.all_tasks()
    with pytest.raises(RuntimeError, match="mistake of ours"):
        await run.check(package, [_Patient(), _Broken()])

    assert asyncio.all_tasks() == before
