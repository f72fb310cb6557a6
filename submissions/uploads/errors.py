"""The one error of uploads, which says what clawhub prints."""

from __future__ import annotations

from vskill.errors import VskillError


class UploadRefused(VskillError):
    """An upload that is not taken; nothing of it was kept. ``status`` is that of the answer, the text is its body."""

    code = "upload_refused"

    def __init__(self, status: int, message: str) -> None:
        """Keep the HTTP status beside the text."""
        super().__init__(message)
        self.status = status
