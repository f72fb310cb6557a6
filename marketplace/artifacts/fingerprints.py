"""The fingerprint by which clawhub recognises a version."""

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
    """Return clawhub's fingerprint (hex) of a skill's files, given as pairs of path and SHA-256 (hex).

    It is the SHA-256 of the lines ``path:sha256``, sorted in ICU's root collation. Files with a name or folder that
    starts with a dot are left out.
    """
    shown = [(path, digest) for path, digest in files if not any(part.startswith(".") for part in path.split("/"))]
    shown.sort(key=lambda file: _collation_key(file[0]))
    return hashlib.sha256("\n".join(f"{path}:{digest}" for path, digest in shown).encode()).hexdigest()
