"""Make a repository with a file that is too large to hold in memory."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.git_factory import git, make_repository

_PORTION = bytes(4 * 1024 * 1024)


def make_repository_with_big_file(path: Path, files: Mapping[str, bytes], name: str, size: int) -> Path:
    """Make a bare repository at ``path`` with ``files`` and the file ``name``, which has ``size`` zero bytes.

    git stores the zeros in very little space. Returns ``path``.
    """
    make_repository(path)
    # One pack, which a fetch sends unchanged. Loose objects would be packed twice more.
    options = ["core.compression=1", "core.bigFileThreshold=1m", "fastimport.unpackLimit=1"]
    argv = ["git", *(word for option in options for word in ("-c", option)), "fast-import", "--quiet"]
    with subprocess.Popen(argv, cwd=path, stdin=subprocess.PIPE) as process:
        stream = process.stdin
        assert stream is not None
        stream.write(b"commit refs/heads/main\ncommitter Test <test@example.org> 1700000000 +0000\ndata 9\nAdd files\n")
        for file, content in files.items():
            stream.write(b"M 100644 inline %s\ndata %d\n%s\n" % (file.encode(), len(content), content))
        stream.write(b"M 100644 inline %s\ndata %d\n" % (name.encode(), size))
        for start in range(0, size, len(_PORTION)):
            stream.write(_PORTION[: size - start])
        stream.write(b"\n")
    assert process.returncode == 0
    assert git(path, "cat-file", "-s", f"main:{name}").strip() == str(size).encode()
    return path
