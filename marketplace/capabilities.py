"""What a skill was seen to be able to do, and whether that is all of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from marketplace.coverage import Coverage, stored_coverage
from marketplace.judgement import Judgement, judge, verdict_of
from marketplace.models import SkillVersion

INCONCLUSIVE: Final = "inconclusive"


@dataclass(frozen=True)
class Capabilities:
    """The ``names`` of what was seen; ``unread`` says that something was not read, so that more is possible.

    With neither, it was read, and nothing was seen.
    """

    names: tuple[str, ...] = ()
    unread: bool = False

    @property
    def known(self) -> bool:
        """Return whether anything can be said: not where nothing was seen in what was not read."""
        return bool(self.names) or not self.unread


NOT_KNOWN: Final = Capabilities(unread=True)


def left_unread(version: SkillVersion) -> bool:
    """Return whether the scan by which a version was published left something unread that could do anything."""
    return is_left_unread(verdict_of(version), stored_coverage(version.engines, version.findings))


def is_left_unread(verdict: str, coverage: Coverage) -> bool:
    """Return whether a scan with a ``verdict`` left something unread that could do anything.

    What passes has left nothing unread but data, such as pictures.
    """
    if not coverage.engines:
        return True
    if judge(verdict) is Judgement.PASSED:
        return False
    return verdict == INCONCLUSIVE or bool(coverage.unread)
