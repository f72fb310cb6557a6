"""Ask one address in a limited child, which connects to the addresses that were checked and to no other."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from submissions.sandbox.child_processes import ChildLimits, ChildResult, PreparedScript, run_child
from submissions.source.pinning import Pinned
from submissions.source.urls import SourcePolicy

_MEMORY: Final = 512 * 1024 * 1024


async def ask_in_child(
    script: Path,
    url: str,
    to: Pinned,
    *,
    policy: SourcePolicy,
    headers: Mapping[str, str],
    seconds: float,
    cpu_seconds: int,
    output_bytes: int,
    more: Mapping[str, Any],
) -> ChildResult:
    """Return how a ``script`` ended that asks ``url`` by a ``PinnedClient``, with the ``headers``.

    It reads a job of JSON, in which are ``to`` for the client, ``ca_file`` and ``proxy`` of the ``policy``, and what
    ``more`` has. ``seconds`` are of wall-clock time, ``cpu_seconds`` of processor time, and ``output_bytes`` is the
    most that it may print.
    """
    job = {
        "to": {"url": url, "host": to.host, "port": to.port, "addresses": to.addresses, "headers": dict(headers)},
        "ca_file": str(policy.ca_file) if policy.ca_file is not None else None,
        "proxy": policy.proxy.for_child() if policy.proxy is not None else None,
        **more,
    }
    with tempfile.TemporaryDirectory(prefix=f"vskill-{script.stem}-") as folder:
        return await run_child(
            PreparedScript(script, ()),
            env={"LC_ALL": "C", "PYTHONUTF8": "1"},
            cwd=Path(folder),
            limits=ChildLimits(
                seconds=seconds,
                output_bytes=output_bytes,
                address_space=_MEMORY,
                cpu_seconds=cpu_seconds,
                file_bytes=0,
            ),
            stdin=json.dumps(job).encode("ascii"),
        )
