"""Archives: reproducible, and without anything that is unsafe to unpack."""

from __future__ import annotations

import gzip
import hashlib
import io
import stat
import tarfile
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketplace.artifacts.archives import Member, build_tar_gz, build_zip, read_member
from marketplace.errors import ArchiveError
from vskill.hidden_characters import has_hidden

SKILL = Member("SKILL.md", b"---\nname: x\n---\n")
SCRIPT = Member("scripts/run.sh", b"#!/bin/sh\n", executable=True)
TAR_DIGEST = "faa047db33cbd524c66e1d1911092d64c7c25b2fedcbf2eb2d7e3cd9b46e329c"

names = st.text(
    st.characters(min_codepoint=0x21, max_codepoint=0x2FFF, categories=["L", "N", "P"]), min_size=1, max_size=12
)
safe_names = names.filter(
    lambda name: name not in (".", "..") and "/" not in name and "\\" not in name and not has_hidden(name)
)
paths = st.lists(safe_names, min_size=1, max_size=3).map("/".join)
trees = st.dictionaries(paths, st.tuples(st.binary(max_size=200), st.booleans()), max_size=6)


def members(tree: dict[str, tuple[bytes, bool]]) -> list[Member]:
    """Return a skill with the files of ``tree``; a path that is both a file and a folder is left out."""
    folders = {path.rpartition("/")[0] for path in tree}
    listed = [
        Member(path, content, executable)
        for path, (content, executable) in tree.items()
        if path != "SKILL.md" and path not in folders and not any(f.startswith(f"{path}/") for f in folders)
    ]
    return [SKILL, *(one for one in listed if not one.path.startswith("SKILL.md/"))]


@given(trees)
def test_what_goes_in_comes_out(tree: dict[str, tuple[bytes, bool]]) -> None:
    given_members = members(tree)
    with zipfile.ZipFile(io.BytesIO(build_zip(given_members).content)) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {m.path: m.content for m in given_members}
    with tarfile.open(fileobj=io.BytesIO(build_tar_gz(given_members).content)) as tar:
        unpacked = {info.name: tar.extractfile(info) for info in tar.getmembers()}
        assert {name: file.read() for name, file in unpacked.items() if file} == {
            m.path: m.content for m in given_members
        }


@given(trees, st.randoms())
def test_the_order_in_which_files_are_given_changes_no_byte(
    tree: dict[str, tuple[bytes, bool]], random: object
) -> None:
    given_members = members(tree)
    shuffled = list(reversed(given_members))
    assert build_zip(given_members) == build_zip(shuffled)
    assert build_tar_gz(given_members) == build_tar_gz(shuffled)


def test_the_bytes_are_these_and_no_others() -> None:
    # A change here changes the digest of every new archive, and clients would see updates where there are none.
    # Compressed bytes depend on the version of zlib, so the uncompressed ones are compared.
    tar = build_tar_gz([SKILL, SCRIPT])
    assert hashlib.sha256(gzip.decompress(tar.content)).hexdigest() == TAR_DIGEST
    assert tar.content[3:8] == b"\0\0\0\0\0", "neither a file name nor a time in the header of gzip"
    assert tar.sha256 == hashlib.sha256(tar.content).hexdigest()


def test_times_owners_and_modes_are_fixed() -> None:
    with tarfile.open(fileobj=io.BytesIO(build_tar_gz([SCRIPT, SKILL]).content)) as tar:
        assert [(i.name, i.mode, i.mtime, i.uid, i.gid, i.uname) for i in tar.getmembers()] == [
            ("SKILL.md", 0o644, 0, 0, 0, ""),
            ("scripts/run.sh", 0o755, 0, 0, 0, ""),
        ]
        assert all(info.isreg() and not info.pax_headers for info in tar.getmembers())
    with zipfile.ZipFile(io.BytesIO(build_zip([SCRIPT, SKILL]).content)) as archive:
        infos = archive.infolist()
    assert [info.filename for info in infos] == ["SKILL.md", "scripts/run.sh"]
    assert {info.date_time for info in infos} == {(1980, 1, 1, 0, 0, 0)}
    assert [stat.filemode(info.external_attr >> 16) for info in infos] == ["-rw-r--r--", "-rwxr-xr-x"]


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "../x", "a/../b", "a/./b", "a//b", "a/", "a\\b", "a\0b", "a\nb", "\u202eb"]
)
@pytest.mark.parametrize("build", [build_zip, build_tar_gz])
def test_a_path_that_leads_out_or_hides_is_refused(build: object, path: str) -> None:
    assert callable(build)
    with pytest.raises(ArchiveError):
        build([SKILL, Member(path, b"")])


def test_a_path_that_ustar_cannot_hold_is_refused() -> None:
    with pytest.raises(ArchiveError, match="too long"):
        build_tar_gz([SKILL, Member("a" * 101, b"")])
    assert build_tar_gz([SKILL, Member("b" * 100 + "/" + "a" * 100, b"")]).content


def test_a_skill_without_skill_md_at_its_root_is_refused() -> None:
    with pytest.raises(ArchiveError, match=r"SKILL\.md"):
        build_zip([Member("docs/SKILL.md", b"")])


def test_two_files_of_one_path_are_refused() -> None:
    with pytest.raises(ArchiveError, match="same path"):
        build_zip([SKILL, SKILL])


def test_one_file_is_read_from_an_archive() -> None:
    archive = build_zip([SKILL, SCRIPT]).content
    assert read_member(archive, "scripts/run.sh") == b"#!/bin/sh\n"
    with pytest.raises(ArchiveError):
        read_member(archive, "scripts")
