"""What a stored verdict means for somebody who is about to install: pages, lists, API and dialects all ask here.

A published version can carry a verdict that holds a skill: a person approved it, or its owner is trusted. It stays
suspicious wherever it is shown. A version that no engine has read is never described as checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final

from marketplace.models import SkillVersion

# The engine name under which our own checks of the format are stored. They read no code.
PRE_SCAN: Final = "structure"
UNSCANNED: Final = "unscanned"
NO_ENGINE: Final = "no_engine"
NOT_SCANNED: Final = "Not scanned: its owner is trusted here."
ENGINELESS: Final = "Not scanned: this registry runs no engine."
NO_VERDICT: Final = "Not scanned: no verdict is recorded for it."
APPROVED: Final = "Published in spite of what the checks found: read the findings first."
INCOMPLETE: Final = "Published although a check that was due could not finish."
FLAGGED: Final = "This registry flagged it after it was published:"
_READ: Final = frozenset({"complete", "partial"})
_PASSED: Final = frozenset({"clear", "notes"})
_HELD: Final = frozenset({"held", "held_high", "inconclusive", "refused", "format"})
# Every verdict that a published version can have.
KNOWN_VERDICTS: Final = ("clear", "notes", *sorted(_HELD), UNSCANNED, NO_ENGINE)


class Judgement(StrEnum):
    """What a verdict says to an installer.

    ``passed``: every engine that was due has run, and nothing held it. ``suspicious``: something held it and it was
    published all the same, or it was flagged later. ``unscanned``: no engine has read it, or no verdict is known.
    """

    PASSED = "passed"
    SUSPICIOUS = "suspicious"
    UNSCANNED = "unscanned"


def judge(verdict: str, flag_reason: str = "") -> Judgement:
    """Return what a published skill's ``verdict`` means; one that is absent or unknown never counts as passed.

    What is flagged for a ``flag_reason`` is suspicious, whatever its verdict was.
    """
    if flag_reason:
        return Judgement.SUSPICIOUS
    if verdict in _PASSED:
        return Judgement.PASSED
    return Judgement.SUSPICIOUS if verdict in _HELD else Judgement.UNSCANNED


def flagged(reason: str) -> str:
    """Return the sentence that warns of a flagged version, empty where there is no ``reason``."""
    return f"{FLAGGED} {reason}" if reason else ""


def warning(verdict: str, flag_reason: str = "") -> str:
    """Return the sentence that warns of a published skill with this verdict, empty for one that passed.

    A flag goes before the verdict, which was reached before it.
    """
    if flag_reason:
        return flagged(flag_reason)
    if verdict == "inconclusive":
        return INCOMPLETE
    if verdict == UNSCANNED:
        return NOT_SCANNED
    if verdict == NO_ENGINE:
        return ENGINELESS
    return {Judgement.PASSED: "", Judgement.SUSPICIOUS: APPROVED, Judgement.UNSCANNED: NO_VERDICT}[judge(verdict)]


def was_scanned(engines: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether an engine other than our own checks of the format read the files, in whole or in part."""
    return any(engine.get("name") != PRE_SCAN and engine.get("status") in _READ for engine in engines)


def verdict_of(version: SkillVersion) -> str:
    """Return the verdict of a version.

    Earlier releases stored ``clear`` or ``notes`` for a version that was checked for its format alone. Migration 0004
    gave those of trusted owners the verdict ``unscanned``; what was stored since is from a policy without engines.
    """
    verdict, engines = version.verdict, version.engines
    only_format = bool(engines) and all(engine.get("name") == PRE_SCAN for engine in engines)
    return NO_ENGINE if verdict in _PASSED and only_format else verdict
