"""Submit the skills of a repository from the command line."""

from __future__ import annotations

import getpass
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from submissions.chosen_audiences import chosen_audience
from submissions.discovery import Discovery, discover, select
from submissions.intake import INTERNAL, Accepted, Outcome, accept_offered
from submissions.job_presentation import job_as_json, job_href
from submissions.jobs.records import Job, JobState
from submissions.jobs.work import AT_ONCE, start_job, step
from submissions.presentation import as_json, found_as_json
from submissions.source.fetching import repository_url
from vskill.accounts.audiences import every_audience, seen_as
from vskill.configuration import load
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.kv.threads import readers, writers
from vskill.management.environment_command import EnvironmentCommand
from vskill.processes.single_instance import running_address


class Command(EnvironmentCommand):
    """Fetch a repository, list its skills and submit them through ``intake``, as the form and the API do."""

    help = (
        "Submit every skill of a git repository, those below --folder, or the one that --path or --name chooses. More "
        f"than {AT_ONCE} are one job, which `manage.py job` follows and stops. Verification is done by the queue "
        "consumer (manage.py consume). Exit code 0: all are accepted or known already; 1: one was refused, or nothing "
        "was found."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments."""
        super().add_arguments(parser)
        parser.add_argument("url", help="address of the repository: https://host/owner/name, or owner/name on GitHub")
        parser.add_argument("--path", default="", help="submit only the skill in this folder of the repository")
        parser.add_argument("--folder", default="", help="submit only the skills in and below this folder")
        parser.add_argument("--name", default="", help="submit only the skill of this name")
        parser.add_argument(
            "--audience", default="", help="to whom they are shown: members or a team; by default by policy"
        )
        parser.add_argument("--dry-run", action="store_true", help="list what would be submitted, and submit nothing")
        self.add_json_argument(parser, documents="one JSON document instead of lines")

    def handle(self, *args: Any, **options: Any) -> None:
        """Submit; a database that is not prepared is said before anything is fetched."""
        self.refuse_unprepared(self.selected_environments(options))
        super().handle(*args, **options)

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        """Submit in one environment."""
        try:
            address = repository_url(env, options["url"]).url
            audience = await readers.run(partial(chosen_audience, env, address, options["audience"], of_any_team=True))
            path = options["path"] or options["folder"]
            discovery = await discover(env, options["url"], path=path, note=not options["dry_run"])
            discovery = select(discovery, path=options["path"], name=options["name"])
            if options["dry_run"]:
                self._print_found(discovery, as_json=options["as_json"])
            elif len(discovery.skills) > AT_ONCE:
                await self._submit_as_job(env, discovery, audience, as_json=options["as_json"])
            else:
                actor = getpass.getuser()
                answers = await accept_offered(env, discovery, source="command", actor=actor, audience=audience)
                reached = _as_reached(env)
                # Who works on the server is shown what is for anybody.
                with seen_as(await readers.run(every_audience, env)):
                    await readers.run(partial(self._report, reached, discovery, answers, as_json=options["as_json"]))
        except VskillError as error:
            raise CommandError(str(error)) from error

    def _print_found(self, discovery: Discovery, *, as_json: bool) -> None:
        if as_json:
            skills = [found_as_json(skill, named=discovery.named) for skill in discovery.skills]
            self.stdout.write(
                json.dumps({"repoUrl": discovery.repo_url, "commitSha": discovery.commit_sha, "skills": skills})
            )
            return
        for skill in discovery.skills:
            would = found_as_json(skill, named=discovery.named)["wouldBe"]
            refused = [*skill.problems, *([skill.reserved] if skill.reserved else [])]
            said = [f"would be submitted as {skill.slug}"] if would == "submitted" else refused or [INTERNAL]
            state = "; ".join([*said, *skill.notes])
            self.stdout.write(f"{skill.name or skill.path or '.'}\t{skill.path or '.'}\t{state}")

    async def _submit_as_job(self, env: WorkerEnv, discovery: Discovery, audience: str, *, as_json: bool) -> None:
        """Accept the skills slice by slice; where this process is ended, a consumer goes on with the job."""
        reached = _as_reached(env)
        by: Any = {"source": "command", "actor": getpass.getuser(), "audience": audience}
        job: Job = await writers.run(start_job, env, discovery, here=True, **by)
        if not as_json:
            self.stdout.write(f"{job.total:,} skills as one job: {reached.public_url}{job_href(env, job.id)}")
        while job.state is JobState.ACCEPTING:
            job = await step(env, job.id)
            if not as_json and self.stdout.isatty():
                self.stdout.write(f"\r{100 * job.done // max(1, job.slices)} % accepted", ending="")
        if as_json:
            self.stdout.write(json.dumps(await readers.run(job_as_json, reached, job)))
        else:
            ending = "\n" if self.stdout.isatty() else ""
            self.stdout.write(f"{ending}{job.state}; follow or stop it with: manage.py job {job.id}")

    def _report(self, env: WorkerEnv, discovery: Discovery, answers: Sequence[Accepted], *, as_json: bool) -> None:
        if as_json:
            items = [
                {
                    "skillPath": answer.skill.path,
                    "skillName": answer.skill.name,
                    "outcome": answer.outcome,
                    "reason": answer.reason,
                    "notes": answer.skill.notes,
                    "submission": _submission_json(env, answer),
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

    def _print(self, env: WorkerEnv, answers: Sequence[Accepted]) -> None:
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


def _submission_json(env: WorkerEnv, answer: Accepted) -> dict[str, Any] | None:
    return as_json(env, answer.submission) if answer.submission is not None else None


def _as_reached(env: WorkerEnv) -> WorkerEnv:
    """Return ``env`` with the address of the server that runs here, where the settings name none."""
    given = load()
    named = any(given[name].source != "default" for name in ("VSKILL_PUBLIC_URL", "VSKILL_ENVIRONMENTS"))
    address = "" if named else running_address(Path(settings.DATA_DIR))
    return replace(env, public_url=address) if address else env
