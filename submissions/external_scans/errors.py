"""Errors of external scans.

ExternalScanError
├── UnknownScanner      the environment has no scanner of this name
├── TooManyScans        the limit of an hour is reached
├── NothingToScan       the skill has no version that is published
└── ResultRefused       a result that was posted is not accepted; ``status`` is its HTTP status
"""

from __future__ import annotations

from vskill.errors import VskillError


class ExternalScanError(VskillError):
    """Base of the errors of external scans."""

    code = "external_scan_error"


class UnknownScanner(ExternalScanError):
    """The environment has no scanner of this name; nothing was asked."""

    code = "unknown_scanner"


class TooManyScans(ExternalScanError):
    """The limit of an hour is reached; nothing was asked. After ``retry_after`` seconds the next is possible."""

    code = "too_many_scans"

    def __init__(self, message: str, retry_after: int) -> None:
        """Keep the seconds beside the ``message``."""
        super().__init__(message)
        self.retry_after = retry_after


class NothingToScan(ExternalScanError):
    """The skill is not there, or has no version that is published; nothing was asked."""

    code = "nothing_to_scan"


class ResultRefused(ExternalScanError):
    """A result that was posted is not accepted; nothing of it was kept."""

    def __init__(self, status: int, code: str, message: str) -> None:
        """Keep the HTTP ``status`` and the ``code`` of this refusal beside the ``message``."""
        super().__init__(message)
        self.status = status
        self.reason = code
