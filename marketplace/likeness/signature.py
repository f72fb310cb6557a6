"""Digest the content of a skill so that a copy is recognised: under other file names, with other whitespace, changed.

Two digests, both of normal text: Unicode compatibility forms and case folded, invisible characters out, the front
matter's name, version and author out, and the mention of a file of the skill replaced by one mark.

* The *normal digest* is one SHA-256 over all files, without whitespace and without their names. It is equal for equal
  content and says nothing else, so content that equals known bad content may be refused by it.
* The *sketch* is a bottom-k sketch (Broder 1997; Cohen and Kaplan 2007): of the hashes of all runs of five words, the
  256 lowest. Two sketches estimate how much of two texts is the same, and how much of one is in the other, without bias
  and with a standard error of 0.03 at most. MinHash with many functions would give the first alone, at 256 times the
  hashing. SimHash and TLSH compare whole texts by one distance, which padding moves and which short texts do not have.
"""

from __future__ import annotations

import base64
import hashlib
import re
import struct
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

SKETCH_SIZE: Final = 256
VERSION: Final = 1
"""The version of both digests; those of different versions cannot be compared."""

_WORDS: Final = 5
# Text beyond this is in the normal digest and not in the sketch, which would cost seconds.
_MOST_SKETCHED: Final = 200_000
# Less says nothing about where it is from.
_LEAST_NORMAL: Final = 64
_LEAST_SHINGLES: Final = 24
_INVISIBLE: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]"
)
_SPACE: Final = re.compile(r"\s+")
_TOKEN: Final = re.compile(r"\w+|[^\w\s]")
# The longest runs of what paths consist of, so that a long text without blanks is read once.
_MENTION: Final = re.compile(r"[\w.{}$@~:/\\+-]+")
_FRONT_MATTER: Final = re.compile(r"\A---[ \t]*\n(.*?\n)---[ \t]*(?:\n|\Z)", re.DOTALL)
_OF_THE_AUTHOR: Final = re.compile(r"^(?:name|version|author|authors|license)[ \t]*:.*\n", re.MULTILINE | re.IGNORECASE)
_LICENCE: Final = re.compile(r"(?:licen[cs]e|copying|notice|unlicense)(?:[.-].*)?", re.IGNORECASE)
_MARK: Final = "\x1afile\x1a"


@dataclass(frozen=True)
class Signature:
    """The digests of one skill; ``normal_digest`` is empty and ``sketch`` has nothing where there is too little text.

    ``sketch`` are numbers below 2**63 in ascending order.
    """

    normal_digest: str = ""
    sketch: tuple[int, ...] = ()


@dataclass(frozen=True)
class Likeness:
    """How similar two sketches are: the share of both that is common, and the share of the first that is in the other.

    ``compared`` is the number of runs of words that the second figure rests on.
    """

    resemblance: float
    contained: float
    compared: int


def signature(files: Iterable[tuple[str, bytes]]) -> Signature:
    """Return the digests of a skill with these files: pairs of a path below its root and the bytes."""
    listed = sorted(files, key=lambda file: (file[0].upper() != "SKILL.MD", len(file[1]), file[0]))
    names = frozenset(path.casefold() for path, _ in listed)
    names |= {name.rpartition("/")[2] for name in names}
    digests, hashes, length, sketched = [], set[int](), 0, 0
    for path, content in listed:
        text = _normal_text(path, content, names)
        if text is None:
            digest = hashlib.sha256(content).digest()
            hashes.add(_number(digest))
            length += len(content)
        else:
            bare = _SPACE.sub("", text)
            digest = hashlib.sha256(bare.encode("utf-8", "surrogatepass")).digest()
            length += len(bare)
            if not bare:
                continue
            if not _LICENCE.fullmatch(path.rpartition("/")[2]) and sketched < _MOST_SKETCHED:
                part = text[: _MOST_SKETCHED - sketched]
                sketched += len(part)
                hashes |= _shingles(part)
        digests.append(digest)
    normal = hashlib.sha256(b"%d" % VERSION + b"".join(sorted(digests))).hexdigest() if length >= _LEAST_NORMAL else ""
    sketch = tuple(sorted(hashes)[:SKETCH_SIZE]) if len(hashes) >= _LEAST_SHINGLES else ()
    return Signature(normal, sketch)


def _normal_text(path: str, content: bytes, names: Collection[str]) -> str | None:
    """Return the text of a file as it is compared, ``None`` for one that is no text."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    if "\0" in text:
        return None
    if not text.isascii():
        text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if path.upper() == "SKILL.MD":
        text = _FRONT_MATTER.sub(lambda found: _OF_THE_AUTHOR.sub("", found[1]), text, count=1)

    def marked(found: re.Match[str]) -> str:
        # An address is kept as it is: the same file on another host is another file.
        bare = found[0].rstrip(".:").removeprefix("./")
        return _MARK if bare in names else found[0]

    return _MENTION.sub(marked, text.casefold())


def _shingles(text: str) -> set[int]:
    words = _TOKEN.findall(text)
    runs = {" ".join(words[start : start + _WORDS]) for start in range(max(1, len(words) - _WORDS + 1))}
    return {_number(hashlib.blake2b(run.encode("utf-8", "surrogatepass"), digest_size=8).digest()) for run in runs}


def _number(digest: bytes) -> int:
    # One bit less, because databases have signed numbers.
    return int.from_bytes(digest[:8], "big") >> 1


def compare(first: Collection[int], second: Collection[int]) -> Likeness:
    """Return how similar two skills are by their sketches."""
    if not first or not second:
        return Likeness(0.0, 0.0, 0)
    ours, theirs = set(first), set(second)
    lowest = sorted(ours | theirs)[:SKETCH_SIZE]
    common = sum(1 for value in lowest if value in ours and value in theirs)
    # Above the last value of a full sketch, nothing is known of its text.
    known = min(max(one) if len(one) >= SKETCH_SIZE else 2**63 for one in (ours, theirs))
    comparable = [value for value in ours if value <= known]
    inside = sum(1 for value in comparable if value in theirs)
    return Likeness(common / len(lowest), inside / len(comparable) if comparable else 0.0, len(comparable))


def pack(sketch: Collection[int]) -> str:
    """Return a sketch as text that ``unpack`` reads."""
    return base64.b64encode(struct.pack(f">{len(sketch)}Q", *sketch)).decode()


def unpack(text: str) -> tuple[int, ...]:
    """Return the sketch in a text from ``pack``; raise ``ValueError`` for any other text."""
    packed = base64.b64decode(text, validate=True)
    if len(packed) % 8 or len(packed) > SKETCH_SIZE * 8:
        raise ValueError("not a sketch")
    numbers = struct.unpack(f">{len(packed) // 8}Q", packed)
    if any(number >= 2**63 for number in numbers) or sorted(set(numbers)) != list(numbers):
        raise ValueError("not a sketch")
    return numbers


def signature_as_value(made: Signature) -> dict[str, Any]:
    """Return a signature as the value of an entry."""
    return {"normalDigest": made.normal_digest, "sketch": list(made.sketch)}


def signature_from_value(value: Any) -> Signature:
    """Return the signature in a value from ``signature_as_value``; one without digests for any other value."""
    if not isinstance(value, Mapping):
        return Signature()
    digest, sketch = value.get("normalDigest"), value.get("sketch")
    if not isinstance(digest, str) or not isinstance(sketch, list) or not all(isinstance(one, int) for one in sketch):
        return Signature()
    return Signature(digest, tuple(sketch))
