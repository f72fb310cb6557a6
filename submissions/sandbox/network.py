"""Find out whether this kernel lets a child process be cut off from the network."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from submissions.sandbox.child_processes import ChildLimits, run_child

_NAMESPACE: Final = Path("/proc/self/ns/net")
_PROGRAM: Final = f"import os; print(os.readlink({str(_NAMESPACE)!r}))"


async def can_cut_network() -> bool:
    """Return whether a child with ``ChildLimits.network`` False has a network namespace of its own.

    It starts such a child (0.1 s). Raises OSError when none can be started.
    """
    if sys.platform != "linux":
        return False
    own = str(_NAMESPACE.readlink())
    result = await run_child(
        [sys.executable, "-I", "-S", "-c", _PROGRAM],
        env={},
        cwd=Path("/"),
        limits=ChildLimits(seconds=30, output_bytes=1024, network=False),
    )
    return result.ok and result.stdout.decode("ascii", "replace").strip() not in ("", own)
