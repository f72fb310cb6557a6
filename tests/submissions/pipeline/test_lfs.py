"""A skill with files in Git LFS: what is published is what was checked, whatever its host gives in between."""

from __future__ import annotations

import asyncio
import io
import shutil
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from marketplace.models import ArchiveBlob, SkillVersion
from submissions.operations import approve
from submissions.pipeline.process import process_submission
from submissions.source.errors import FetchFailed
from submissions.source.snapshots import make_room
from submissions.states import State
from submissions.store.queries import history
from submissions.store.records import Submission
from tests.git_factory import make_repository, skill_md
from tests.submissions.front_door import EVIL, submitted_one, worked_off
from tests.submissions.source.https_host import CERTIFICATE
from tests.submissions.source.lfs.lfs_host import LfsHost, always, lfs_host, pointer, pointer_text, put_object
from vskill.environments import WorkerEnv
from vskill.kv.threads import readers, writers
from vskill.worker_context import run_with_worker_env

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_data_folder")]

MODEL = b"\x08\x07\x00weights" * 300
POINTER = pointer_text(MODEL)
BATCH = "/a/skills.git/info/lfs/objects/batch"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a repository whose skill needs an approval and has its model in Git LFS."""
    (tmp_path / "a").mkdir()
    return make_repository(tmp_path / "a" / "skills.git", {"s/SKILL.md": EVIL, "s/model.onnx": POINTER})


@pytest.fixture
def host(tmp_path: Path, source: Path) -> Iterator[LfsHost]:
    shutil.rmtree(source)
    make_repository(source, {"s/SKILL.md": skill_md("s"), "s/model.onnx": POINTER})
    with lfs_host(tmp_path) as serving:
        yield serving


@pytest.fixture
def over_https(env: WorkerEnv, host: LfsHost) -> WorkerEnv:
    policy = replace(env.policy, source_private_hosts=(f"127.0.0.1:{host.host.port}",), source_ca_file=str(CERTIFICATE))
    return replace(env, policy=policy)


async def model_of() -> bytes:
    """Return the model that somebody gets who installs the only version."""
    version = await SkillVersion.objects.aget()
    blob = await ArchiveBlob.objects.aget(sha256=version.tar_sha256)
    with tarfile.open(fileobj=io.BytesIO(bytes(blob.content))) as archive:
        return (archive.extractfile("model.onnx") or io.BytesIO()).read()


async def approved_after(env: WorkerEnv, held: Submission) -> Submission:
    """Approve what was held, forget the snapshot, and return where its publication ends."""
    assert held.state is State.ON_HOLD
    moved = await writers.run(approve, env, held.id, actor="operator", reason="a training example")
    await asyncio.to_thread(make_room, -1.0)
    return await worked_off(env, moved)


async def states(env: WorkerEnv, submission: Submission) -> list[str]:
    return [step.to_state for step in await readers.run(history, env, submission.id)]


async def test_an_object_that_is_gone_before_publication_voids_the_check(env: WorkerEnv, source: Path) -> None:
    put_object(source, MODEL)
    held = await worked_off(env, await submitted_one(env, f"file://{source}"))
    shutil.rmtree(source / "lfs")
    ended = await approved_after(env, held)
    assert State.RESCAN_REQUIRED in await states(env, ended)
    # Checked again as it now is, and nobody has approved that.
    assert (ended.state, ended.text("approvedBy")) == (State.ON_HOLD, "")
    assert ended.text("contentHash") != held.text("contentHash")
    assert await SkillVersion.objects.acount() == 0


async def test_an_object_that_appears_before_publication_voids_the_check(env: WorkerEnv, source: Path) -> None:
    held = await worked_off(env, await submitted_one(env, f"file://{source}"))
    put_object(source, MODEL)
    ended = await approved_after(env, held)
    assert State.RESCAN_REQUIRED in await states(env, ended)
    assert ended.state is State.ON_HOLD
    assert await SkillVersion.objects.acount() == 0


async def test_an_object_that_stays_is_published_as_it_was_checked(env: WorkerEnv, source: Path) -> None:
    put_object(source, MODEL)
    held = await worked_off(env, await submitted_one(env, f"file://{source}"))
    ended = await approved_after(env, held)
    assert ended.state is State.PUBLISHED
    assert State.RESCAN_REQUIRED not in await states(env, ended)
    assert ended.text("contentHash") == held.text("contentHash")
    assert await model_of() == MODEL


async def test_an_object_comes_over_https_once_and_serves_a_later_attempt(
    over_https: WorkerEnv, host: LfsHost, tmp_path: Path
) -> None:
    host.add(MODEL)
    submission = await submitted_one(over_https, f"{host.base}/a/skills")
    ended = await worked_off(over_https, submission)
    assert (ended.state, ended.text("verdict")) == (State.PUBLISHED, "notes")
    assert await model_of() == MODEL
    assert len(host.seen) == 1
    (kept,) = (tmp_path / "data" / "snapshots").rglob(pointer(MODEL).oid)
    assert kept.read_bytes() == MODEL


async def test_a_host_in_trouble_is_asked_again_and_at_last_gives_the_pointer(
    over_https: WorkerEnv, host: LfsHost
) -> None:
    host.host.answers[BATCH] = always(503)
    submission = await submitted_one(over_https, f"{host.base}/a/skills")
    with pytest.raises(FetchFailed, match="Git LFS could not be fetched: its host answers with status 503"):
        await run_with_worker_env(over_https, process_submission, submission.id)

    async def last() -> Submission:
        return await process_submission(submission.id, last_attempt=True)

    ended = await run_with_worker_env(over_https, last)
    assert ended.state is State.PUBLISHED
    assert await model_of() == POINTER.encode()
    [note] = (await SkillVersion.objects.aget()).findings
    assert note["ruleId"] == "structure.lfs-pointer"
    assert "It was not fetched, because its host answers with status 503." in note["why"]


async def test_a_host_in_trouble_that_recovers_gives_the_file(over_https: WorkerEnv, host: LfsHost) -> None:
    host.add(MODEL)
    honest, host.host.answers[BATCH] = host.host.answers[BATCH], always(503)
    submission = await submitted_one(over_https, f"{host.base}/a/skills")
    with pytest.raises(FetchFailed):
        await run_with_worker_env(over_https, process_submission, submission.id)
    host.host.answers[BATCH] = honest
    ended = await run_with_worker_env(over_https, process_submission, submission.id)
    assert ended.state is State.PUBLISHED
    assert await model_of() == MODEL
