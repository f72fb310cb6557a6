"""Remove the scratch folders of killed processes, and what else is not used any more."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from submissions.source.fetching import ABANDONED_AFTER, remove_abandoned_scratch
from submissions.source.snapshots import make_room
from submissions.uploads.stored import remove_old_staged
from vskill.environments import all_environments, get_environment


class Command(BaseCommand):
    """Remove scratch folders of fetches that no process uses any more."""

    help = (
        "Remove the scratch folders of fetches whose process was killed, and the snapshots of commits that no "
        "submission has used for a quarter of an hour, and files that were uploaded a day ago and then not published. "
        "No running fetch is older than the limit."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments."""
        parser.add_argument(
            "--older-than", type=float, metavar="SECONDS", default=ABANDONED_AFTER, help="default %(default)g"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Remove them and print how many there were."""
        removed = remove_abandoned_scratch(options["older_than"])
        snapshots = make_room()
        files = sum(remove_old_staged(get_environment(name)) for name in all_environments())
        if options["verbosity"]:
            self.stdout.write(
                f"scratch folders removed: {removed}; snapshots of commits: {snapshots}; files of unfinished uploads: "
                f"{files}"
            )
