"""The slug rule: how a skill gets its name in URLs. It is defined only here."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Final

MAX_SLUG_LENGTH: Final = 64
# Words that URLs of the API have in the place of a slug.
RESERVED_SLUGS: Final = frozenset({"search", "installs", "check-updates", "alias"})


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:8]


def _hyphenated(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _cut(slug: str) -> str:
    if len(slug) <= MAX_SLUG_LENGTH:
        return slug
    # With a hash, because two long names may differ only at their ends.
    return f"{slug[: MAX_SLUG_LENGTH - 9].rstrip('-')}-{_digest(slug)}"


def base_slug(name: str) -> str:
    """Return the slug of a name: lower case, with every run of other characters replaced by one hyphen.

    Only ASCII letters and digits are kept. The slug is trimmed, and cut to ``MAX_SLUG_LENGTH``. A name without such
    characters (in Chinese, for example) gives ``skill-`` and a short hash of the name.
    """
    return _cut(_hyphenated(name) or f"skill-{_digest(name)}")


def is_slug(text: str) -> bool:
    """Return whether ``text`` follows the slug rule and is not reserved."""
    return bool(text) and base_slug(text) == text and text not in RESERVED_SLUGS


def slug_candidates(name: str, owner: str, repository: str, identity: str) -> Iterator[str]:
    """Yield the slugs that a skill may have, best first.

    The slug of its ``name`` comes first, then the same with its ``owner``, then with ``owner`` and ``repository``. The
    last one ends with a hash of ``identity``, so no other skill has it.
    """
    base = base_slug(name)
    longer = (base, f"{_hyphenated(owner)}-{base}", f"{_hyphenated(owner)}-{_hyphenated(repository)}-{base}")
    for slug in longer:
        if is_slug(cut := _cut(slug.strip("-"))):
            yield cut
    yield _cut(f"{base[:48].rstrip('-')}-{_digest(identity)}")
