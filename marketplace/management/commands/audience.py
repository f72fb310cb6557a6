"""Say to whom skills are shown, from a shell."""

from __future__ import annotations

import getpass
import json
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError, CommandParser

from marketplace.catalog import find_skill_sync
from marketplace.skills.audience import show_to
from vskill.accounts.teams import audience_named, name_of_audience
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.kv.threads import readers, writers
from vskill.management.environment_command import EnvironmentCommand


class Command(EnvironmentCommand):
    """Show a skill to everybody, to members or to a team, or say to whom it is shown."""

    help = (
        "A skill is shown to everybody (public), to members, or to one team: docs/visibility.md. For others it is not "
        "there. A change counts for the next request on every surface. Without --to, it says to whom a skill is shown."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the skill, the audience and the reason."""
        super().add_arguments(parser)
        parser.add_argument("slug", help="the skill")
        parser.add_argument("--to", metavar="AUDIENCE", help="public, members, or the name of a team")
        parser.add_argument("--reason", default="", help="why; it goes into the history")
        parser.add_argument("--dry-run", action="store_true", help="say what would change, and change nothing")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON document")

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        """Change or show it in one environment; raise ``CommandError`` where that cannot be done."""
        skill = await readers.run(find_skill_sync, env, options["slug"], every=True)
        if skill is None:
            raise CommandError(f"{env.name} has no skill {options['slug']!r}. Nothing was changed.")
        before = await readers.run(name_of_audience, env, skill.audience)
        shown: dict[str, Any] = {"skill": skill.slug, "audience": before}
        words = f"{skill.slug} is shown to {before}"
        if options["to"]:
            try:
                audience = await readers.run(audience_named, env, options["to"])
                if not options["dry_run"]:
                    who = {"actor": getpass.getuser(), "reason": options["reason"]}
                    await writers.run(show_to, env, skill.slug, audience, **who)
            except VskillError as error:
                raise CommandError(str(error)) from error
            shown |= {"audience": options["to"], "before": before, "dryRun": options["dry_run"]}
            would = "would be" if options["dry_run"] else "is"
            words = f"{skill.slug} {would} shown to {options['to']}; before: {before}"
        self.stdout.write(json.dumps(shown) if options["as_json"] else words)
