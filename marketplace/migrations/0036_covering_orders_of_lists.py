"""Give the indexes of the orders of lists what a list asks of each skill, which PostgreSQL then reads from them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("marketplace", "0035_longer_texts"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="skillentry",
            name="skill_newest",
        ),
        migrations.RemoveIndex(
            model_name="skillentry",
            name="skill_changed",
        ),
        migrations.RemoveIndex(
            model_name="skillentry",
            name="skill_downloads",
        ),
        migrations.RemoveIndex(
            model_name="skillentry",
            name="skill_slug",
        ),
        migrations.RemoveIndex(
            model_name="skillentry",
            name="skill_trending",
        ),
        migrations.AddIndex(
            model_name="skillentry",
            index=models.Index(
                fields=["namespace", "visibility", "-published_at", "-id"],
                include=("slug", "latest_version", "verdict", "license"),
                name="skill_newest",
            ),
        ),
        migrations.AddIndex(
            model_name="skillentry",
            index=models.Index(
                fields=["namespace", "visibility", "-changed_at", "-id"],
                include=("slug", "latest_version", "verdict", "license"),
                name="skill_changed",
            ),
        ),
        migrations.AddIndex(
            model_name="skillentry",
            index=models.Index(
                fields=["namespace", "visibility", "-downloads", "-id"],
                include=("slug", "latest_version", "verdict", "license"),
                name="skill_downloads",
            ),
        ),
        migrations.AddIndex(
            model_name="skillentry",
            index=models.Index(
                fields=["namespace", "visibility", "-recent_downloads", "-id"],
                include=("slug", "latest_version", "verdict", "license"),
                name="skill_trending",
            ),
        ),
        migrations.AddIndex(
            model_name="skillentry",
            index=models.Index(
                fields=["namespace", "visibility", "slug", "id"],
                include=("latest_version", "verdict", "license"),
                name="skill_slug",
            ),
        ),
    ]
