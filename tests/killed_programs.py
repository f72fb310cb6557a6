"""Run a program of ``killed_writes`` on the database of the tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.vskill.kv.test_processes import ROOT, database_url


def run_killed(
    module: str, points: Sequence[str], environments: Mapping[str, Any], data: Path, **variables: str
) -> None:
    """Run the program ``module`` at each of the ``points``; fail unless each of its processes was killed.

    It works in the ``environments``, with ``data`` as its folder and further ``variables``.
    """
    ended = subprocess.run(
        [sys.executable, "-m", module, *points],
        cwd=ROOT,
        env={
            **os.environ,
            "DATABASE_URL": database_url(),
            "DJANGO_SETTINGS_MODULE": "vskill.settings",
            "VSKILL_DATA_DIR": str(data),
            "VSKILL_ENVIRONMENTS": json.dumps(environments),
            **variables,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout.split() == [str(-signal.SIGKILL)] * len(points), ended.stderr
