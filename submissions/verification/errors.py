"""Errors of the verification package; what goes wrong inside an engine is a result, not an error."""

from __future__ import annotations

from vskill.errors import VskillError


class VerificationError(VskillError):
    """Base of the errors of this package."""

    code = "verification_error"


class UnknownEngine(VerificationError):
    """Raised when a setting names an engine that does not exist."""

    code = "unknown_engine"


class EngineUnavailable(VerificationError):
    """Raised when an engine is configured but not installed."""

    code = "engine_unavailable"
