"""Let the index of a publisher's skills tell which of them are shown, so that none of others is read for them."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    """Replace the index of a publisher's skills."""

    dependencies: ClassVar[list[Any]] = [("marketplace", "0017_withdrawals_and_agents")]

    operations: ClassVar[list[Any]] = [
        migrations.RemoveIndex(model_name="skillentry", name="skill_publisher"),
        migrations.AddIndex(
            model_name="skillentry",
            index=models.Index(
                fields=["namespace", "publisher_handle", "visibility", "-published_at", "-id"], name="skill_publisher"
            ),
        ),
    ]
