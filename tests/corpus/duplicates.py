"""Tell samples apart that say the same: by their bytes, and by their text without what copies change."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from submissions.verification.package_contents import PackageFile, hash_files
from tests.corpus.samples import text_files

_FRONT_NAME = re.compile(r"^(?:name|version|author|date\w*):.*$", re.MULTILINE)


def content_hash(files: Mapping[str, bytes]) -> str:
    """Return the content hash that the product gives these files."""
    return hash_files(
        PackageFile(path, len(content), hashlib.sha256(content).hexdigest(), executable=False)
        for path, content in files.items()
    )


def normalised_hash(files: Mapping[str, bytes]) -> str:
    """Return what near-duplicates share: the letters of all text, in lower case, without names and numbers.

    Files that are no text count by their bytes.
    """
    digest = hashlib.sha256()
    texts = dict(text_files(files))
    for path, content in sorted(files.items()):
        if path in texts:
            letters = re.sub(r"[\W\d_]+", " ", _FRONT_NAME.sub("", texts[path]).lower())
            digest.update(letters.strip().encode())
        else:
            digest.update(hashlib.sha256(content).digest())
        digest.update(b"\0")
    return digest.hexdigest()
