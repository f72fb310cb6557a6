"""Keep files and folders readable by their owner alone."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import Any


def keep_private(path: Path, mode: int) -> None:
    """Take the permissions that ``mode`` does not have from a file or folder of this user, if there is one.

    What belongs to another user is left: its owner decides.
    """
    with contextlib.suppress(FileNotFoundError):
        found = path.stat()
        if found.st_uid == os.geteuid() and (present := stat.S_IMODE(found.st_mode)) & ~mode:
            path.chmod(present & mode)


def keep_database_private(*, connection: Any, **_kwargs: Any) -> None:
    """Make the file of a new SQLite connection readable by its owner alone; SQLite copies that to its other files."""
    if connection.vendor == "sqlite":
        keep_private(Path(str(connection.settings_dict["NAME"])), 0o600)
