"""The files of a publication are read as they were verified, or the reason is the true one."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path

import pytest

from marketplace.artifacts.verified_files import read_members
from marketplace.errors import PublicationMismatch
from marketplace.skills.publication import PublishedFile


def test_a_file_that_cannot_be_opened_for_want_of_descriptors_is_not_called_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "SKILL.md").write_bytes(b"text")
    file = PublishedFile("SKILL.md", 4, hashlib.sha256(b"text").hexdigest())
    [member] = read_members(tmp_path, [file])
    assert member.content == b"text"

    opened = os.open

    def used_up(path: str, flags: int, *arguments: int, **options: int) -> int:
        if path == "SKILL.md":
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return opened(path, flags, *arguments, **options)

    monkeypatch.setattr(os, "open", used_up)
    with pytest.raises(OSError, match="Too many open files"):
        read_members(tmp_path, [file])


def test_a_file_that_is_gone_is_not_the_one_that_was_verified(tmp_path: Path) -> None:
    with pytest.raises(PublicationMismatch, match="is not the file that was verified"):
        read_members(tmp_path, [PublishedFile("SKILL.md", 4, "0" * 64)])
