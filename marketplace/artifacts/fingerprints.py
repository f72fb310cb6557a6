"""The content hash of a skill, and the fingerprint by which clawhub recognises a version."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

# The order of printable ASCII in the root collation of ICU, which JavaScript's localeCompare follows: punctuation,
# digits, letters.
_COLLATION: Final = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"
_RANKS: Final = {character: rank for rank, character in enumerate(_COLLATION)}


def content_hash(files: Iterable[tuple[str, str]]) -> str:
    """Return the content hash of a skill's files, given as pairs of path and SHA-256 (hex): 64 hex digits.

    It is the SHA-256 of one record per file, sorted by the UTF-8 bytes of the path. A record is the path in UTF-8, a
    zero byte, the file's SHA-256 as 64 lower-case hex digits, and a line feed. A path holds neither zero bytes nor
    line feeds, so two different packages cannot give the same records. Modes and times are not part of it.
    """
    digest = hashlib.sha256()
    for record in sorted((path.encode(), sha256.encode("ascii")) for path, sha256 in files):
        digest.update(b"\0".join(record) + b"\n")
    return digest.hexdigest()


def _collation_key(path: str) -> tuple[list[int], list[bool]]:
    ranks = [_RANKS.get(character.lower(), len(_RANKS) + ord(character)) for character in path]
    return ranks, [character.isupper() for character in path]


def fingerprint(files: Iterable[tuple[str, str]]) -> str:
    """Return clawhub's fingerprint (hex) of a skill's files, given as pairs of path and SHA-256 (hex).

    It is the SHA-256 of the lines ``path:sha256``, sorted in ICU's root collation. Files with a name or folder that
    starts with a dot are left out.
    """
    shown = [(path, digest) for path, digest in files if not any(part.startswith(".") for part in path.split("/"))]
    shown.sort(key=lambda file: _collation_key(file[0]))
    return hashlib.sha256("\n".join(f"{path}:{digest}" for path, digest in shown).encode()).hexdigest()
