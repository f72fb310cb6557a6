"""What a pointer of Git LFS is."""

from __future__ import annotations

import pytest

from submissions.source.lfs.pointers import POINTER_SIZES, Pointer, read_pointer

BEGINNING = "version https://git-lfs.github.com/spec/v1\n"


@pytest.mark.parametrize("size", [0, 9, 123456, 10**13])
def test_a_pointer_is_recognised(size: int) -> None:
    content = f"{BEGINNING}oid sha256:{'ab' * 32}\nsize {size}\n".encode()
    assert read_pointer(content) == Pointer("ab" * 32, size)
    assert len(content) in POINTER_SIZES
    assert read_pointer(b"#" + content) is None


def test_a_pointer_to_what_a_program_has_to_unpack_says_so() -> None:
    extension = f"ext-0-secret sha256:{'cd' * 32}\n"
    content = f"{BEGINNING}{extension}oid sha256:{'ab' * 32}\nsize 9\n".encode()
    assert read_pointer(content) == Pointer("ab" * 32, 9, extended=True)
