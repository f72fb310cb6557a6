"""Submit the skills of a repository from the command line."""

from __future__ import annotations

import getpass
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from submissions.discovery import Discovery, discover, select
from submissions.intake import INTERNAL, Outcome, accept_offered
from submissions.presentation import as_json, found_as_json
from vskill.configuration import load
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.management.environment_command import EnvironmentCommand
from vskill.processes.single_instance import running_address


class Command(EnvironmentCommand):
    """Fetch a repository, list its skills and submit them through ``intake``, as the form and the API do."""

    help = (
        "Submit every skill of a git repository, or the one that --path or --name chooses. Verification is done "
        "by the queue consumer (manage.py consume). Exit code 0: all are accepted or known already; 1: one was "
        "refused, or nothing was found."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments."""
        super().add_arguments(parser)
        parser.add_argument(
            "url",
            help="address of the repository or of a folder in it: https://host/owner/name, owner/name on GitHub, with "
            "#BRANCH for a branch or tag (docs/addresses.md lists all forms)",
        )
        parser.add_argument("--path", default="", help="submit only the skill in this folder of the repository")
        parser.add_argument("--name", default="", help="submit only the skill of this name")
        parser.add_argument("--dry-run", action="store_true", help="list what would be submitted, and submit nothing")
        self.add_json_argument(parser, documents="one JSON document instead of lines")

    def handle(self, *args: Any, **options: Any) -> None:
        """Submit; a database that is not prepared is said before anything is fetched."""
        self.refuse_unprepared(self.selected_environments(options))
        super().handle(*args, **options)

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        """Submit in one environment."""
        try:
            discovery = await discover(env, options["url"], path=options["path"])
            discovery = select(discovery, path=options["path"], name=options["name"])
            if options["dry_run"]:
                self._print_found(discovery, as_json=options["as_json"])
                return
            answers = await accept_offered(env, discovery, source="command", actor=getpass.getuser())
        except VskillError as error:
            raise CommandError(str(error)) from error
        env = _as_reached(env)
        if options["as_json"]:
            items = [
                {
                    "skillPath": answer.skill.path,
                    "skillName": answer.skill.name,
                    "outcome": answer.outcome,
                    "reason": answer.reason,
                    "notes": answer.skill.notes,
                    "submission": as_json(env, answer.submission) if answer.submission else None,
                }
                for answer in answers
            ]
            self.stdout.write(
                json.dumps({"repoUrl": discovery.repo_url, "commitSha": discovery.commit_sha, "skills": items})
            )
        else:
            self._print(env, answers)
        if any(answer.submission is None and answer.outcome is not Outcome.INTERNAL for answer in answers):
            raise CommandError("Some skills were not submitted; see above for the reasons.")

    def _print_found(self, discovery: Discovery, *, as_json: bool) -> None:
        if as_json:
            skills = [found_as_json(skill, named=discovery.named) for skill in discovery.skills]
            self.stdout.write(
                json.dumps({"repoUrl": discovery.repo_url, "commitSha": discovery.commit_sha, "skills": skills})
            )
            return
        for skill in discovery.skills:
            would = found_as_json(skill, named=discovery.named)["wouldBe"]
            said = ["would be submitted"] if would == "submitted" else skill.problems or [INTERNAL]
            state = "; ".join([*said, *skill.notes])
            self.stdout.write(f"{skill.name or skill.path or '.'}\t{skill.path or '.'}\t{state}")

    def _print(self, env: WorkerEnv, answers: list[Any]) -> None:
        width = max(len(answer.skill.name or answer.skill.path or ".") for answer in answers)
        for answer in answers:
            name = (answer.skill.name or answer.skill.path or ".").ljust(width)
            if answer.submission is None:
                style = self.style.WARNING if answer.outcome is Outcome.INTERNAL else self.style.ERROR
                self.stdout.write(style(f"{name}  {answer.outcome}: {answer.reason}"))
                continue
            known = "" if answer.outcome is Outcome.CREATED else f" ({answer.outcome.replace('_', ' ')})"
            self.stdout.write(
                f"{name}  {answer.submission.state}{known}  {as_json(env, answer.submission)['statusUrl']}"
            )
        counted = Counter(answer.outcome for answer in answers)
        self.stdout.write(", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in counted.items()))


def _as_reached(env: WorkerEnv) -> WorkerEnv:
    """Return ``env`` with the address of the server that runs here, where the settings name none."""
    given = load()
    named = any(given[name].source != "default" for name in ("VSKILL_PUBLIC_URL", "VSKILL_ENVIRONMENTS"))
    address = "" if named else running_address(Path(settings.DATA_DIR))
    return replace(env, public_url=address) if address else env
