"""What a command on SQLite does not load."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = (
    "import sys, django; django.setup()\n"
    "import submissions.management.commands.consume\n"
    "sys.exit('psycopg' in sys.modules)"
)


def test_a_command_on_sqlite_does_not_wait_for_the_driver_of_postgresql(tmp_path: Path) -> None:
    variables = {"DJANGO_SETTINGS_MODULE": "vskill.settings", "VSKILL_DATA_DIR": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"PATH": os.environ["PATH"], "DATABASE_URL": f"sqlite:///{tmp_path / 'none.sqlite3'}", **variables},
        check=False,
    )
    assert ended.returncode == 0
