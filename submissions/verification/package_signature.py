"""The digests by which the content of a package is recognised when it comes again."""

from __future__ import annotations

from marketplace.likeness.signature import Signature, signature
from submissions.verification.packages import SkillPackage


def signature_of(package: SkillPackage) -> Signature:
    """Return the signature of a package, whose files are read for it."""
    return signature((file.path, (package.root / file.path).read_bytes()) for file in package.files)
