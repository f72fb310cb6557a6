"""Fetching under the policy and the limits of an environment."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from asgiref.sync import async_to_sync
from django.core.management import call_command
from pytest_django.fixtures import Settings

from submissions.source import fetching, git_process
from submissions.source.errors import FetchFailed, FetchTimedOut, InvalidRepositoryURL
from submissions.source.fetching import fetch, remove_abandoned_scratch, repository_url, scratch_folder
from tests.git_factory import make_repository, skill_md
from tests.loop_time import WatchedPlaces, let_time_pass
from tests.submissions.front_door import repository, skills
from tests.submissions.source.https_host import CERTIFICATE, https_host, port_of, silent_host
from vskill.environments import WorkerEnv, build_environment

pytestmark = pytest.mark.usefixtures("own_data_folder")


async def _break_inside() -> None:
    async with scratch_folder() as folder:
        (folder / "inside").mkdir()
        raise RuntimeError("broken")


def test_a_scratch_folder_goes_away_with_what_is_in_it(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="broken"):
        async_to_sync(_break_inside)()

    assert list((tmp_path / "data" / "work").iterdir()) == []


async def test_folders_of_killed_processes_are_removed_and_living_ones_stay(tmp_path: Path) -> None:
    async with scratch_folder() as living:
        dead = tmp_path / "data" / "work" / "dead"
        (dead / "git").mkdir(parents=True)
        os.utime(dead, (time.time() - 7200,) * 2)

        assert remove_abandoned_scratch() == 1
        assert living.is_dir()
        assert not dead.exists()


@pytest.mark.django_db(transaction=True)
def test_the_command_says_how_many_were_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "data" / "work" / "dead").mkdir(parents=True)
    call_command("clean_scratch", older_than=-1.0)

    said = "scratch folders removed: 1; snapshots of commits: 0; files of unfinished uploads: 0\n"
    assert capsys.readouterr().out == said

    (tmp_path / "data" / "work" / "dead").mkdir()
    call_command("clean_scratch", older_than=-1.0, verbosity=0)
    assert capsys.readouterr().out == ""
    assert list((tmp_path / "data" / "work").iterdir()) == []


async def test_a_slow_host_has_no_more_fetches_at_once_than_it_may_and_another_is_fetched_from_meanwhile(
    env: WorkerEnv, settings: Settings, tmp_path: Path
) -> None:
    settings.FETCH_PROCESSES = 3
    here = replace(env, policy=replace(env.policy, source_private_hosts=("127.0.0.1",)))
    folders = [tmp_path / f"fetch-{number}" for number in range(6)]
    quick = repository_url(here, repository(tmp_path, skills("one")))
    with silent_host() as listener:
        url = repository_url(here, f"https://127.0.0.1:{port_of(listener)}/a/b")
        for folder in folders:
            folder.mkdir()
        fetches = [asyncio.create_task(fetch(here, url, folder)) for folder in folders]
        for ended in (0, 2, 4):
            connections = [await asyncio.to_thread(listener.accept) for _ in range(2)]
            # A fetch begins by making its repository; the folder of one that still waits is empty.
            assert sum(any(folder.iterdir()) for folder in folders) == ended + 2
            (tmp_path / f"quick-{ended}").mkdir()
            assert (await fetch(here, quick, tmp_path / f"quick-{ended}")).commit_sha
            for connection, _address in connections:
                connection.close()
        errors = await asyncio.gather(*fetches, return_exceptions=True)

    assert {type(error) for error in errors} == {FetchFailed}


async def test_a_fetch_without_a_slot_in_time_says_so(env: WorkerEnv, settings: Settings, tmp_path: Path) -> None:
    settings.FETCH_PROCESSES = 0
    settings.FETCH_SECONDS = 0.01
    with pytest.raises(FetchTimedOut, match="Many repositories are being fetched") as raised:
        await fetch(env, repository_url(env, repository(tmp_path, skills("one"))), tmp_path)

    assert raised.value.transient


async def test_a_patient_fetch_waits_for_a_slot_without_a_limit(
    env: WorkerEnv, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = WatchedPlaces()
    monkeypatch.setattr(fetching, "fetch_slots", lambda: places)
    url = repository_url(env, repository(tmp_path, skills("one")))
    (tmp_path / "fetch").mkdir()
    fetching_patiently = asyncio.create_task(fetch(env, url, tmp_path / "fetch", patient=True))
    await places.asked.wait()
    await let_time_pass(10 * settings.FETCH_SECONDS)
    places.add_one()

    assert (await fetching_patiently).commit_sha
    assert places.free == 1, "the slot was not released"


def test_the_policy_of_the_environment_decides_what_is_fetched(env: WorkerEnv) -> None:
    with pytest.raises(InvalidRepositoryURL, match="folders that the operator allows"):
        repository_url(env, "file:///usr/share/repository")


async def test_the_authority_of_a_private_host_is_trusted_beside_those_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "team").mkdir()
    make_repository(tmp_path / "team/tools.git", {"SKILL.md": skill_md()})
    system = tmp_path / "system"
    system.mkdir()
    other = tmp_path / "other.pem"
    made = ["openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-subj", "/CN=other", "-out", str(other)]
    await asyncio.to_thread(subprocess.run, [*made, "-keyout", "/dev/null"], check=True, capture_output=True)
    policy = {"source_private_hosts": ["127.0.0.1"], "source_ca_file": str(other)}
    corp = build_environment("corp", {"policy": policy}, {})
    monkeypatch.setattr(git_process, "SYSTEM_AUTHORITIES", str(system))
    with https_host(tmp_path) as host:
        url = repository_url(corp, f"https://127.0.0.1:{host.port}/team/tools")
        async with scratch_folder() as folder:
            with pytest.raises(FetchFailed, match="certificate"):
                await fetch(corp, url, folder)
        # By the hash of its subject, as OpenSSL looks it up.
        shutil.copy(CERTIFICATE, system / "a8860cf8.0")
        async with scratch_folder() as folder:
            assert [entry.path for entry in (await fetch(corp, url, folder)).entries] == ["SKILL.md"]


async def test_the_authority_of_a_private_host_is_the_one_that_the_environment_names(tmp_path: Path) -> None:
    (tmp_path / "team").mkdir()
    make_repository(tmp_path / "team/tools.git", {"SKILL.md": skill_md()})
    policy = {"source_private_hosts": ["127.0.0.1"]}
    stranger = build_environment("stranger", {"policy": policy}, {})
    corp = build_environment("corp", {"policy": {**policy, "source_ca_file": str(CERTIFICATE)}}, {})
    with https_host(tmp_path) as host:
        url = f"https://127.0.0.1:{host.port}/team/tools"
        async with scratch_folder() as folder:
            snapshot = await fetch(corp, repository_url(corp, url), folder)
            assert [entry.path for entry in snapshot.entries] == ["SKILL.md"]
        async with scratch_folder() as folder:
            with pytest.raises(FetchFailed, match="certificate"):
                await fetch(stranger, repository_url(stranger, url), folder)
