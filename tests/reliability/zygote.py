"""A process that has loaded the product and forks a new process for every role, which saves the time to start.

Start it as ``python -m tests.reliability.zygote`` with the environment of an installation. It reads one JSON document
per line and answers each with one. ``{"start": NAME, "arguments": {...}, "log": PATH}`` forks a child that runs the
role of that name in ``tests.reliability.roles``, and the answer has its pid. The answer to ``{"wait": PID}`` has its
exit code; a negative one is the signal that ended it. The children die with the zygote.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any, Final, NoReturn

_PR_SET_PDEATHSIG: Final = 1


def main() -> None:
    """Load the product and answer requests on stdin until it is closed."""
    import django  # noqa: PLC0415 - only the process itself needs it

    django.setup()
    from django.urls import get_resolver  # noqa: PLC0415 - apps must be ready first

    from tests.reliability import roles  # noqa: PLC0415 - as above

    # Loaded here once, because every child would load it on first use.
    get_resolver().url_patterns  # noqa: B018 - a property that imports every view
    for line in sys.stdin:
        order = json.loads(line)
        if "start" in order:
            answer: dict[str, Any] = {"pid": _fork(roles, order)}
        else:
            _pid, status = os.waitpid(order["wait"], 0)
            answer = {"code": os.waitstatus_to_exitcode(status)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _fork(roles: Any, order: dict[str, Any]) -> int:
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        _play(roles, order, parent)
    return pid


def _play(roles: Any, order: dict[str, Any], parent: int) -> NoReturn:
    code = 70
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(71)
        with Path(order["log"]).open("wb", buffering=0) as log:
            for descriptor in (1, 2):
                os.dup2(log.fileno(), descriptor)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        getattr(roles, order["start"])(**order["arguments"])
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 - the child of a fork must never return to the loop of its parent
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
