"""Errors of reading and checking skills; trouble inside an engine is a result, not an error."""

from __future__ import annotations

from collections.abc import Sequence

from submissions.source.errors import SourceError
from submissions.verification.findings import Finding
from vskill.errors import VskillError


class TooManySkills(SourceError):
    """Raised when a repository holds more skill folders than may be listed."""

    code = "too_many_skills"


class InvalidPackage(SourceError):
    """Raised when a folder is no valid skill; ``findings`` holds every problem, not only the first."""

    code = "invalid_package"

    def __init__(self, message: str, findings: Sequence[Finding]) -> None:
        """Keep the findings beside the sentence."""
        super().__init__(message)
        self.findings: list[Finding] = list(findings)


class UnknownEngine(VskillError):
    """Raised when a setting names an engine that does not exist."""

    code = "unknown_engine"


class EngineUnavailable(VskillError):
    """Raised when an engine is configured but not installed."""

    code = "engine_unavailable"


class EngineIncomplete(VskillError):
    """An engine that was due did not finish; the check is tried again."""

    code = "engine_incomplete"
