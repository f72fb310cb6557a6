"""Which files are kept in Git LFS, by .gitattributes."""

from __future__ import annotations

import pytest

from submissions.verification.lfs_attributes import LfsAttributes


@pytest.mark.parametrize(
    ("folder", "line", "path", "kept"),
    [
        ("", "*.onnx filter=lfs diff=lfs merge=lfs -text", "s/a/model.onnx", True),
        ("", "*.onnx filter=lfs", "s/a/model.onnx.md", False),
        ("", "*.onnx diff=lfs", "model.onnx", False),
        ("", "*.onnx filter=lfsx", "model.onnx", False),
        ("", "# *.onnx filter=lfs", "model.onnx", False),
        ("", "assets/** filter=lfs", "assets/a/b.png", True),
        ("", "/assets/*.png filter=lfs", "assets/b.png", True),
        ("s", "assets/*.png filter=lfs", "s/assets/b.png", True),
        ("s", "assets/*.png filter=lfs", "t/assets/b.png", False),
        ("s", "*.png filter=lfs", "t/b.png", False),
        ("", '"a b.png" filter=lfs', "x/a b.png", True),
    ],
)
def test_a_line_names_files(folder: str, line: str, path: str, kept: bool) -> None:
    attributes = LfsAttributes()
    attributes.add(folder, f"# attributes\n{line}\n".encode())
    assert attributes.names(path) is kept


def test_a_pattern_of_many_stars_costs_no_time() -> None:
    attributes = LfsAttributes()
    attributes.add("", b"*a" * 60 + b"b filter=lfs\n")
    assert not attributes.names("a" * 250)
