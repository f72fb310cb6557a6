"""Keep with a submission to whom its submitter wants the skill shown."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models
from django.db.migrations.operations.base import Operation


class Migration(migrations.Migration):
    """Add the column, which nothing has yet, and its index."""

    dependencies: ClassVar[list[tuple[str, str]]] = [
        ("submissions", "0019_upload_in_the_admin"),
    ]

    operations: ClassVar[list[Operation]] = [
        migrations.AddField(
            model_name="submissionentry",
            name="audience",
            field=models.CharField(blank=True, max_length=40, null=True),
        ),
        migrations.AddIndex(
            model_name="submissionentry",
            index=models.Index(
                condition=models.Q(("audience__isnull", False)),
                fields=["namespace", "audience", "repo_url"],
                name="submission_audience",
            ),
        ),
    ]
