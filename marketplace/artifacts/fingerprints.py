"""Hashes over a whole skill: the content hash, and the fingerprint by which clawhub knows a version again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

# The order of printable ASCII in the root collation of ICU, which JavaScript's localeCompare follows: punctuation,
# digits, letters.
_COLLATION: Final = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"
_RANKS: Final = {character: rank for rank, character in enumerate(_COLLATION)}


def _collation_key(path: str) -> tuple[list[int], list[bool]]:
    ranks = [_RANKS.get(character.lower(), len(_RANKS) + ord(character)) for character in path]
    return ranks, [character.isupper() for character in path]


def fingerprint(files: Iterable[tuple[str, str]]) -> str:
    """Return clawhub's fingerprint of (path, SHA-256) pairs.

    It is the SHA-256 of ``path:sha256`` lines in ICU order; paths with a dot segment are left out.
    """
    shown = [(path, digest) for path, digest in files if not any(part.startswith(".") for part in path.split("/"))]
    shown.sort(key=lambda file: _collation_key(file[0]))
    return hashlib.sha256("\n".join(f"{path}:{digest}" for path, digest in shown).encode()).hexdigest()
