"""The Django app of the submissions."""

from __future__ import annotations

from django.apps import AppConfig


class SubmissionsConfig(AppConfig):
    """Submissions on their way: intake, queue, verification, recovery."""

    name = "submissions"
    verbose_name = "Submissions"
    reviewer_permissions = ("submissions.change_submissionentry", "submissions.add_waiver", "submissions.delete_waiver")

    def ready(self) -> None:
        """Register the system checks, and let the outbox hear of what happens to published skills."""
        from marketplace.skill_changes import skill_changed  # noqa: PLC0415 - apps must be ready first
        from submissions import checks, outbox, source_checks  # noqa: F401, PLC0415 - registers them; as above
        from submissions.claiming import checks as claiming_checks  # noqa: F401, PLC0415 - as above

        skill_changed.connect(outbox.tell_changed, dispatch_uid="submissions.outbox")
