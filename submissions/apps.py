"""The Django app of the submissions."""

from __future__ import annotations

from django.apps import AppConfig


class SubmissionsConfig(AppConfig):
    """Submissions on their way: intake, queue, verification, recovery."""

    name = "submissions"
    verbose_name = "Submissions"
    reviewer_permissions = ("submissions.change_submissionentry", "submissions.add_waiver", "submissions.delete_waiver")

    def ready(self) -> None:
        """Register the system checks."""
        from submissions import checks, source_checks  # noqa: F401, PLC0415 - registers them; apps must be ready first
