"""Bring the slugs of all skills under the slug rule."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, ClassVar

from asgiref.sync import sync_to_async
from django.core.management.base import CommandParser

from marketplace.skills.slug_migration import SlugMigration, migrate_skill_slugs
from vskill.environments import WorkerEnv
from vskill.management.environment_command import EnvironmentCommand


class Command(EnvironmentCommand):
    """Rename skills whose slug does not follow the rule; see ``migrate_skill_slugs``.

    Exit codes: 0 for success, 2 where other writers changed some skills meanwhile, 3 where some could not be read.
    """

    help = "Rename skills whose slug does not follow the rule, leaving an alias for each. Twice is once."
    all_by_default: ClassVar[bool] = True

    def add_arguments(self, parser: CommandParser) -> None:
        """Add ``--dry-run`` and ``--json``."""
        super().add_arguments(parser)
        parser.add_argument("--dry-run", action="store_true", help="report what would be done and write nothing")
        parser.add_argument("--json", action="store_true", help="print one JSON object for each environment")

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> SlugMigration:
        """Migrate one environment, print what was done and return the report."""
        report = await sync_to_async(migrate_skill_slugs)(env, dry_run=options["dry_run"])
        if options["json"]:
            self.stdout.write(json.dumps({"environment": env.name, "dry_run": options["dry_run"], **asdict(report)}))
        else:
            self._print(env, report, dry_run=options["dry_run"])
        return report

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate each selected environment, and exit with the highest exit code among them."""
        with self.connections_given_back():
            reports = [self.run_in(env, options) for env in self.selected_environments(options)]
        if any(report.unreadable for report in reports):
            raise SystemExit(3)
        if any(report.conflicts for report in reports):
            raise SystemExit(2)

    def _print(self, env: WorkerEnv, report: SlugMigration, *, dry_run: bool) -> None:
        for moved in (*report.migrated, *report.collisions):
            note = "" if moved.new == moved.wanted else f" ({moved.wanted} belongs to another skill)"
            self.stdout.write(f"{env.name}: {moved.old} -> {moved.new}{note}")
        for key in report.unreadable:
            self.stderr.write(f"{env.name}: {key} holds no skill that can be read; it was left as it is")
        for slug in report.conflicts:
            self.stderr.write(f"{env.name}: {slug} was changed by another writer meanwhile; run this again")
        did = "would migrate" if dry_run else "migrated"
        self.stdout.write(
            f"{env.name}: {did} {len(report.migrated)}, skipped {report.skipped}, collisions {len(report.collisions)}, "
            f"unreadable {len(report.unreadable)}, conflicts {len(report.conflicts)}"
        )
