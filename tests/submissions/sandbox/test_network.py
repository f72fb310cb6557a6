"""Whether a child can be cut off from the network is found out by trying, on kernels that permit it and that do not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from submissions.sandbox.network import can_cut_network

ROOT = Path(__file__).resolve().parents[3]
ASK = "import asyncio; from submissions.sandbox.network import can_cut_network; print(asyncio.run(can_cut_network()))"
# The limit counts for this user namespace and all below it, so that nothing in them makes a network namespace.
FORBIDDEN = 'echo 0 > /proc/sys/user/max_net_namespaces && exec "$0" -c "$1"'


def permitted(*arguments: str) -> bool:
    return subprocess.run(["unshare", *arguments, "true"], check=False, capture_output=True).returncode == 0


async def test_the_answer_is_that_of_the_kernel() -> None:
    assert await can_cut_network() is permitted("--net", "--map-root-user")


def test_where_the_kernel_forbids_it_the_answer_is_no() -> None:
    if not permitted("--user", "--map-root-user"):
        pytest.skip("this kernel does not let us make a user namespace, in which it could be forbidden")
    asked = subprocess.run(
        ["unshare", "--user", "--map-root-user", "sh", "-c", FORBIDDEN, sys.executable, ASK],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    if asked.returncode and "max_net_namespaces" in asked.stderr:
        pytest.skip("this kernel does not let us set a limit of namespaces")
    assert (asked.stdout, asked.stderr) == ("False\n", "")
