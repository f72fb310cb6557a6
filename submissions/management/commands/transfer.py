"""Hand skills from one publisher to another from a shell, and hand them back."""

from __future__ import annotations

import getpass
import json
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError, CommandParser

from marketplace.catalog import find_skill_sync
from marketplace.errors import SkillNotFound
from marketplace.models import SkillEntry, SkillTransfer
from marketplace.ownership.transfers import TransferRefused, hand_over, skills_of_publisher, transfers_of, undo
from marketplace.skills.handles import present_handle
from submissions.claiming.offers import receiving_repository
from submissions.source.errors import SourceError
from vskill.environments import WorkerEnv
from vskill.kv.clock import isoformat
from vskill.kv.threads import readers, writers
from vskill.management.environment_command import EnvironmentCommand


class Command(EnvironmentCommand):
    """Hand skills over, list transfers, and undo one."""

    help = (
        "A skill that is handed over keeps its name, versions and downloads; it is listed under the publisher that "
        "receives it, its updates come from a repository of that one, and it is found under the former one as before: "
        "docs/ownership.md. `skill` hands one over, `publisher` all of a publisher, `list` shows what was handed over "
        "and what is offered, `undo` hands one back. Exit code 1: something was refused; the rest was done."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the actions ``skill``, ``publisher``, ``list`` and ``undo`` with their arguments."""
        super().add_arguments(parser)
        actions = parser.add_subparsers(dest="action", required=True)
        one = actions.add_parser("skill", help="hand one skill over")
        one.add_argument("slug", help="the name of the skill")
        one.add_argument("--path", default=None, help="folder of the skill in the new repository; default: the same")
        every = actions.add_parser("publisher", help="hand over every skill of a publisher")
        every.add_argument("handle", help="whose skills, such as acme or platform.git.corp.example")
        for action in (one, every):
            action.add_argument(
                "to", help="who receives it, as host/owner, or the address of the repository that updates come from"
            )
        back = actions.add_parser("undo", help="hand a skill back")
        back.add_argument("number", type=int, help="of the transfer, in the list")
        for action in (one, every, back):
            action.add_argument("--reason", required=True, help="why; it is kept in the history")
            action.add_argument("--dry-run", action="store_true", help="say what would be done, and change nothing")
        listing = actions.add_parser("list", help="show the newest transfers and offers")
        listing.add_argument("--limit", type=int, default=100, help="how many at most")
        for action in (one, every, back, listing):
            action.add_argument("--json", action="store_true", dest="as_json", help="print one JSON document")

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        """Run the action in one environment; raise ``CommandError`` where it cannot be done."""
        if options["action"] == "list":
            found = await readers.run(lambda: [_as_json(one) for one in transfers_of(env)[: max(1, options["limit"])]])
            self._say(options, {"transfers": found}, [_line(one) for one in found] or ["nothing was handed over"])
        elif options["action"] == "undo":
            await self._undo(env, options)
        else:
            await self._hand_over(env, options)

    async def _hand_over(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        if options["action"] == "skill":
            slugs = [options["slug"]]
        else:
            handle = await readers.run(present_handle, env, options["handle"])
            slugs = list(await readers.run(skills_of_publisher, env, handle))
            if not slugs:
                raise CommandError(f"Nobody called {options['handle']!r} has a skill in {env.name!r}.")
        done = [await writers.run(self._one, env, slug, options) for slug in slugs]
        self._say(options, {"transfers": done, "dryRun": options["dry_run"]}, [_line(one) for one in done])
        if any("refused" in one for one in done):
            raise CommandError("Something was not handed over; see above for the reasons.")

    def _one(self, env: WorkerEnv, slug: str, options: Mapping[str, Any]) -> dict[str, Any]:
        try:
            skill = find_skill_sync(env, slug, every=True)
            if skill is None:
                return {"skill": slug, "refused": f"There is no skill {slug!r} in {env.name!r}."}
            address = receiving_repository(env, skill, options["to"])
            if options["dry_run"]:
                return {**_of_skill(skill), "toRepoUrl": address, "state": "would be done"}
            reason, path = options["reason"], options.get("path")
            return _as_json(hand_over(env, skill.slug, address, path=path, actor=getpass.getuser(), reason=reason))
        except (TransferRefused, SkillNotFound, SourceError) as error:
            return {"skill": slug, "refused": str(error)}

    async def _undo(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        number = options["number"]

        def back() -> dict[str, Any]:
            if not options["dry_run"]:
                return _as_json(undo(env, number, actor=getpass.getuser(), reason=options["reason"]))
            found = transfers_of(env).filter(pk=number, state="done").first()
            if found is None:
                raise TransferRefused(f"There is no transfer {number} that is done. Nothing was changed.")
            return _as_json(found)

        try:
            done = await writers.run(back)
        except (TransferRefused, SkillNotFound) as error:
            raise CommandError(str(error)) from error
        self._say(options, {**done, "dryRun": options["dry_run"]}, [_line(done)])

    def _say(self, options: Mapping[str, Any], document: dict[str, Any], lines: list[str]) -> None:
        self.stdout.write(json.dumps(document) if options["as_json"] else "\n".join(lines))


def _of_skill(skill: SkillEntry) -> dict[str, Any]:
    return {"skill": skill.slug, "from": skill.publisher_handle, "fromRepoUrl": skill.repo_url}


def _as_json(row: SkillTransfer) -> dict[str, Any]:
    return {
        "number": row.pk,
        "skill": row.skill.slug,
        "from": row.from_handle,
        "fromRepoUrl": row.from_repo_url,
        "to": row.to_handle,
        "toRepoUrl": row.to_repo_url,
        "toPath": row.to_skill_path,
        "state": row.state,
        "reason": row.reason,
        "offeredBy": row.offered_by,
        "decidedBy": row.decided_by or None,
        "decidedAt": isoformat(row.decided_at) if row.decided_at else None,
    }


def _line(one: Mapping[str, Any]) -> str:
    if "refused" in one:
        return f"{one['skill']}  refused: {one['refused']}"
    number = f"{one['number']}  " if "number" in one else ""
    return f"{number}{one['skill']}  from {one['from']} to {one['toRepoUrl']}  {one['state']}"
