"""What a command on SQLite does not load, and what a start does not complain about."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.contrib import admin
from django.urls import get_resolver

ROOT = Path(__file__).resolve().parents[2]
# Whatever only pages need is loaded with the addresses, or where the admin is checked.
NOT_LOADED = {"psycopg", "vskill.urls", "submissions.admin", "marketplace.pages.views", "cryptography.x509"}
PROGRAM = f"""
import sys, django; django.setup()
import submissions.management.commands.consume
print(*sorted({NOT_LOADED} & set(sys.modules)))
from django.core.checks import run_checks
assert run_checks(tags=["admin"]) == []
from django.contrib import admin
print(*sorted(admin.site._registry, key=str), sep="\\n")
"""


def variables(data_dir: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "DJANGO_SETTINGS_MODULE": "vskill.settings",
        "VSKILL_DATA_DIR": str(data_dir),
        "DATABASE_URL": f"sqlite:///{data_dir / 'none.sqlite3'}",
    }


def test_a_command_on_sqlite_loads_neither_the_driver_of_postgresql_nor_pages_and_a_check_finds_every_admin(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-c", PROGRAM]
    said = subprocess.run(command, cwd=ROOT, env=variables(tmp_path), check=True, stdout=subprocess.PIPE, text=True)
    loaded, *registered = said.stdout.split("\n")
    assert loaded == ""
    # The pages of this process, which has read the addresses, have the same.
    get_resolver().url_patterns  # noqa: B018 - reads them
    assert registered == [*sorted(map(str, admin.site._registry)), ""]


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
