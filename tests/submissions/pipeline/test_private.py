"""A private repository, from its address to the published skill: its secret is told to its host and to nobody else."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest
from django.apps import apps
from django.db import connection

from submissions.discovery import discover
from submissions.listings import ListingExpired, keep_listing, read_listing
from submissions.source.errors import RepositoryNotFound
from submissions.source.logins import Login
from submissions.states import State
from tests.git_factory import make_repository
from tests.submissions.front_door import skills, submitted_one, worked_off
from tests.submissions.source.https_host import CERTIFICATE, HttpsHost, https_host
from vskill.environments import WorkerEnv
from vskill.kv.threads import readers
from vskill.source_credentials import SourceCredential

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_data_folder")]

SECRET = "s3cr3t-of-the-corp/+="
LOGIN = Login("", "x-access-token", SECRET)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[HttpsHost]:
    (tmp_path / "acme").mkdir()
    make_repository(tmp_path / "acme/skills.git", skills("internal-notes"))
    with https_host(tmp_path) as serving:
        serving.logins["/acme/"] = LOGIN.header
        yield serving


@pytest.fixture
def env(env: WorkerEnv, host: HttpsHost) -> WorkerEnv:
    policy = replace(
        env.policy,
        source_private_hosts=("127.0.0.1",),
        source_ca_file=str(CERTIFICATE),
        source_credentials=(SourceCredential(f"127.0.0.1:{host.port}/acme", "token", LOGIN.user, "corp"),),
    )
    return replace(env, policy=policy, secrets=MappingProxyType({"corp": SECRET}))


@pytest.fixture
def stranger(env: WorkerEnv) -> WorkerEnv:
    """Return another environment, which knows the host and has no credential for it."""
    return replace(env, name="stranger", policy=replace(env.policy, source_credentials=()), secrets={})


def rows() -> str:
    """Return every row of every table."""
    tables = [*(model._meta.db_table for model in apps.get_models(include_auto_created=True)), "django_migrations"]
    with connection.cursor() as cursor:
        found = []
        for table in tables:
            cursor.execute(f'SELECT * FROM "{table}"')  # noqa: S608 - the names are our own
            found += [repr([bytes(one) if isinstance(one, memoryview) else one for one in row]) for row in cursor]
    return "\n".join(found)


def command_lines() -> str:
    """Return what everybody on this machine can read of its processes."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_text("utf-8", "replace").replace("\0", " "))
        except OSError:
            continue
    return "\n".join(found)


async def test_the_secret_is_in_no_table_no_log_no_file_and_no_list_of_processes(
    env: WorkerEnv, host: HttpsHost, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    processes: list[str] = []
    # While git waits for its answer, so that it is among them.
    host.during = lambda: processes.append(command_lines())
    url = f"https://127.0.0.1:{host.port}/acme/skills"
    with caplog.at_level(logging.DEBUG):
        await keep_listing(env, await discover(env, url))
        ended = await worked_off(env, await submitted_one(env, url))
    assert ended.state is State.PUBLISHED
    assert {sent for _, sent in host.sent} == {LOGIN.header}
    assert all(f"127.0.0.1:{host.port}/acme/skills" in one for one in processes)
    table = await readers.run(rows)
    assert url in table
    files = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert files
    content = "\n".join(f"{path}\n{path.read_bytes().decode('latin-1')}" for path in files)
    for text in (table, caplog.text, *processes, content, repr(env), repr(ended)):
        assert not LOGIN.repeated_in(text)


async def test_what_one_environment_may_read_is_not_shown_to_another(
    env: WorkerEnv, stranger: WorkerEnv, host: HttpsHost
) -> None:
    url = f"https://127.0.0.1:{host.port}/acme/skills"
    listing = await keep_listing(env, await discover(env, url))
    assert (await worked_off(env, await submitted_one(env, url))).state is State.PUBLISHED
    with pytest.raises(ListingExpired):
        await read_listing(stranger, listing)
    with pytest.raises(RepositoryNotFound, match="asks for sign-in"):
        await discover(stranger, url)


async def test_a_credential_that_is_taken_away_ends_the_submission_and_is_not_tried_for_ever(
    env: WorkerEnv, host: HttpsHost
) -> None:
    waiting = await submitted_one(env, f"https://127.0.0.1:{host.port}/acme/skills")
    host.logins["/acme/"] = "Basic another"
    ended = await worked_off(env, waiting)
    assert (ended.state, "does not let this registry in" in str(ended.text("reason"))) == (
        State.TIER1_FAILED,
        True,
    )
