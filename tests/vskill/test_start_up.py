"""What a command on SQLite does not load, and what a start does not complain about."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = (
    "import sys, django; django.setup()\n"
    "import submissions.management.commands.consume\n"
    "sys.exit('psycopg' in sys.modules)"
)


def variables(data_dir: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "DJANGO_SETTINGS_MODULE": "vskill.settings",
        "VSKILL_DATA_DIR": str(data_dir),
        "DATABASE_URL": f"sqlite:///{data_dir / 'none.sqlite3'}",
    }


def test_a_command_on_sqlite_does_not_wait_for_the_driver_of_postgresql(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, env=variables(tmp_path), check=False)
    assert ended.returncode == 0


@pytest.mark.parametrize("debug", ["0", "1"])
def test_the_web_server_loads_without_a_warning(tmp_path: Path, debug: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "error", "manage.py", "check", "--fail-level", "WARNING"],
        cwd=ROOT,
        env={**variables(tmp_path), "VSKILL_DEBUG": debug},
        check=False,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", "import django.core.asgi as asgi; asgi.get_asgi_application()"],
        cwd=ROOT,
        env={**variables(tmp_path), "VSKILL_DEBUG": debug},
        check=False,
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
