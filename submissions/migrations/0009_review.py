"""The review queue: a rank for what is held, and a row for each rule that holds it."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models


def rank_what_is_held(apps: Any, schema_editor: Any) -> None:
    """Rank what an earlier release held by its verdict, as ``review_rank`` does for it."""
    alias = schema_editor.connection.alias
    held = apps.get_model("submissions", "SubmissionEntry")._base_manager.using(alias).filter(state="ON_HOLD")
    held.update(
        review_rank=models.Case(
            models.When(verdict="held_high", then=models.Value(350)),
            models.When(verdict="held", then=models.Value(300)),
            default=models.Value(0),
        )
    )


class Migration(migrations.Migration):
    dependencies = [
        ("submissions", "0006_turns_of_publishers"),
    ]

    operations = [
        migrations.AddField(
            model_name="submissionentry",
            name="review_rank",
            field=models.IntegerField(blank=True, null=True),
        ),
        migrations.RunPython(rank_what_is_held, migrations.RunPython.noop, elidable=True),
        migrations.CreateModel(
            name="RuleSign",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("namespace", models.CharField(max_length=64)),
                ("submission_id", models.CharField(max_length=64)),
                ("engine", models.CharField(max_length=64)),
                ("rule_id", models.CharField(max_length=200)),
                ("severity", models.CharField(max_length=16)),
                (
                    "outcome",
                    models.CharField(
                        blank=True, default="", help_text="upheld or overturned; empty: undecided", max_length=16
                    ),
                ),
            ],
            options={
                "verbose_name": "sign of a rule",
            },
        ),
        migrations.CreateModel(
            name="HeldSubmission",
            fields=[],
            options={
                "verbose_name": "held submission",
                "verbose_name_plural": "review queue",
                "proxy": True,
                "indexes": [],
                "constraints": [],
            },
            bases=("submissions.submissionentry",),
        ),
        migrations.AddIndex(
            model_name="submissionentry",
            index=models.Index(
                condition=models.Q(("review_rank__isnull", False)),
                fields=["namespace", "-review_rank", "submitted_at", "id"],
                name="submission_review",
            ),
        ),
        migrations.AddIndex(
            model_name="rulesign",
            index=models.Index(fields=["namespace", "engine", "rule_id", "outcome"], name="sign_of_rule"),
        ),
        migrations.AddConstraint(
            model_name="rulesign",
            constraint=models.UniqueConstraint(
                fields=("namespace", "submission_id", "engine", "rule_id"), name="sign_once_per_submission"
            ),
        ),
    ]
