"""Copy an LFS object out of a repository on this machine, without following a link."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from submissions.source.lfs.pointers import Pointer

# Linux opens a folder that may be entered and not listed only with O_PATH.
_FOLDER: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK, because a pipe without a writer would be waited for.
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# Anything else, such as no more descriptors, is a fault of this machine.
_NOT_THERE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.EPERM, errno.ENXIO})
NOT_THERE: Final = "the repository does not have it"


def copy_object(git_dir: Path, pointer: Pointer, target: Path) -> str | None:
    """Copy the object of ``pointer`` from ``git_dir`` to the new file ``target``, and return None, or why not.

    ``git_dir`` is absolute. No part of the way from the root of the file system to the object may be a link.
    """
    oid = pointer.oid
    *folders, name = (*git_dir.parts[1:], "lfs", "objects", oid[:2], oid[2:4], oid)
    with ExitStack() as opened:
        try:
            folder = os.open("/", _FOLDER)
            opened.callback(os.close, folder)
            for part in folders:
                folder = os.open(part, _FOLDER, dir_fd=folder)
                opened.callback(os.close, folder)
            descriptor = os.open(name, _FILE, dir_fd=folder)
        except OSError as error:
            if error.errno in _NOT_THERE:
                return NOT_THERE
            raise
        opened.callback(os.close, descriptor)
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size != pointer.size:
            return "what the repository has is another file"
        with target.open("xb") as file, os.fdopen(descriptor, "rb", closefd=False) as source:
            file.write(source.read(pointer.size + 1))
    return None
