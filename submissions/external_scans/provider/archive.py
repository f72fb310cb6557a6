"""Fetch the archive of a version, make sure that it is the one, and unpack it within limits."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path, PurePosixPath
from typing import Final

import urllib3

from submissions.external_scans.provider.semgrep import ScannerFailed

MAX_ARCHIVE: Final = 64 * 1024 * 1024
MAX_UNPACKED: Final = 256 * 1024 * 1024
MOST_FILES: Final = 5_000
_TIMEOUT: Final = urllib3.Timeout(connect=5.0, read=30.0)


def fetch_archive(url: str, sha256: str) -> bytes:
    """Return the bytes of the archive at ``url``; raise ScannerFailed where they are not those of ``sha256`` (hex)."""
    digest = hashlib.sha256()
    content = bytearray()
    try:
        with urllib3.PoolManager(timeout=_TIMEOUT, retries=False) as http:
            answer = http.request("GET", url, redirect=False, preload_content=False)
            if answer.status != 200:
                raise ScannerFailed(f"The archive was answered with status {answer.status}.")
            for chunk in answer.stream(64 * 1024):
                content += chunk
                digest.update(chunk)
                if len(content) > MAX_ARCHIVE:
                    raise ScannerFailed("The archive is too large.")
    except urllib3.exceptions.HTTPError as error:
        raise ScannerFailed(f"The archive could not be fetched: {type(error).__name__}.") from error
    if digest.hexdigest() != sha256:
        raise ScannerFailed("The archive is not the one that was named.")
    return bytes(content)


def unpack(content: bytes, folder: Path) -> None:
    """Write the files of an archive below ``folder``; raise ScannerFailed for what our archives never hold."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = [one for one in archive.infolist() if not one.is_dir()]
            if len(members) > MOST_FILES or sum(one.file_size for one in members) > MAX_UNPACKED:
                raise ScannerFailed("The archive holds too much.")
            for one in members:
                path = PurePosixPath(one.filename)
                if path.is_absolute() or ".." in path.parts:
                    raise ScannerFailed("The archive holds a file that would leave its folder.")
                target = folder / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(one))
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise ScannerFailed(f"The archive could not be unpacked: {type(error).__name__}.") from error
