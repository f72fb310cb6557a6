"""The Django app of the submissions."""

from __future__ import annotations

from django.apps import AppConfig


class SubmissionsConfig(AppConfig):
    """Submissions on their way: intake, queue, verification, recovery."""

    name = "submissions"
    verbose_name = "Submissions"
    reviewer_permissions = ("submissions.change_submissionentry", "submissions.add_waiver", "submissions.delete_waiver")

    def ready(self) -> None:
        """Register the system checks, and the admins that lie in rooms of their own."""
        from submissions import checks, source_checks  # noqa: F401, PLC0415 - registers them; apps must be ready first
        from submissions.following import admin as following_admin  # noqa: F401, PLC0415 - as above
        from submissions.queue import admin  # noqa: F401, PLC0415 - as above
        from submissions.review import admin as review_admin  # noqa: F401, PLC0415 - as above
        from submissions.waivers import admin as waivers_admin  # noqa: F401, PLC0415 - as above
