"""The Django app of the submissions."""

from __future__ import annotations

from django.apps import AppConfig


class SubmissionsConfig(AppConfig):
    """Submissions on their way: intake, queue, verification, recovery."""

    name = "submissions"
    verbose_name = "Submissions"
