"""Keep a second instance from starting on a data directory that one runs on already."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from vskill.errors import VskillError

logger = logging.getLogger(__name__)

LOCK_NAME: Final = "up.lock"


class AlreadyRunning(VskillError):
    """Another instance runs on the same data directory; nothing was started."""

    code = "already_running"


@contextmanager
def only_instance(data_dir: Path, address: str) -> Iterator[None]:
    """Hold the lock of ``data_dir`` during the body, and let others read in it who does and at which ``address``.

    Raises ``AlreadyRunning`` where another process holds it. The kernel frees the lock when its process ends, however
    that happens; the file stays. On a file system without locks nothing is kept out, which is logged.
    """
    with (data_dir / LOCK_NAME).open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise AlreadyRunning(
                f"vskill already runs on {data_dir}: {_holder(file.read())}. End it first, or name another "
                "VSKILL_DATA_DIR."
            ) from None
        except OSError as error:
            logger.warning("%s cannot be locked, so a second instance would not be noticed: %s", file.name, error)
            yield
            return
        file.truncate(0)
        file.write(json.dumps({"process": os.getpid(), "host": socket.gethostname(), "address": address}))
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def running_address(data_dir: Path) -> str:
    """Return the address of the instance that runs on ``data_dir``, empty where none does or none can be told."""
    try:
        with (data_dir / LOCK_NAME).open(encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return str(json.loads(file.read())["address"])
    except (OSError, ValueError, LookupError, TypeError):
        return ""
    # Nobody holds the lock: what the file says was left by an instance that was killed.
    return ""


def _holder(text: str) -> str:
    try:
        holder = json.loads(text)
        host = "" if holder["host"] == socket.gethostname() else f" on {holder['host']}"
        return f"process {holder['process']}{host}, {holder['address']}"
    except (ValueError, LookupError, TypeError):
        # It has locked the file and not yet written into it, or writes right now.
        return "another process, which starts or ends at this moment"
