"""Writers in processes of their own lose nothing of what the others write."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import urllib.parse
from pathlib import Path

import pytest
from django.db import connection

from vskill.environments import WorkerEnv
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.outcomes import Outcome, Status

ROOT = Path(__file__).resolve().parents[3]


def database_url() -> str:
    """Return the address of the database of the tests."""
    found = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{found['NAME']}"
    account = f"{urllib.parse.quote(found['USER'])}:{urllib.parse.quote(found['PASSWORD'])}"
    return f"postgres://{account}@{found['HOST']}:{found['PORT']}/{found['NAME']}"


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_eight_processes_that_count_to_fifty_count_to_four_hundred(env: WorkerEnv, tmp_path: Path) -> None:
    namespace = KVNamespace(KVEntry, env)
    namespace.put_sync("counter", 0)
    environment = {
        **os.environ,
        "DATABASE_URL": database_url(),
        "DJANGO_SETTINGS_MODULE": "vskill.settings",
        "VSKILL_DATA_DIR": str(tmp_path),
    }
    command = [sys.executable, "-m", "tests.vskill.kv.increment", "counter", "50"]
    with contextlib.ExitStack() as stack:
        # Whatever happens, each is waited for: it would keep its session in the database of the tests.
        writers = [
            stack.enter_context(
                subprocess.Popen(
                    command,
                    cwd=ROOT,
                    env=environment,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
            for _ in range(8)
        ]
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdin is not None
            assert writer.stdout.readline() == "ready\n"
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write("\n")
            writer.stdin.flush()
        endings = [(writer.communicate()[1], writer.returncode) for writer in writers]
    assert endings == [("", 0)] * 8
    assert namespace.get_sync("counter") == Outcome("counter", Status.VALUE, 400, 401)
