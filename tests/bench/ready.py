"""Begin together: a worker says that it is ready, and begins when it is told that the others are."""

from __future__ import annotations

import json
import sys
import time
from typing import Any


def wait_for_the_others() -> float:
    """Say that this worker is ready, wait until all are, and return the moment by ``time.perf_counter``."""
    print("ready", flush=True)
    assert sys.stdin.readline() == "go\n"
    return time.perf_counter()


def say(told: dict[str, Any]) -> None:
    """Say what came out."""
    print(json.dumps(told), flush=True)
