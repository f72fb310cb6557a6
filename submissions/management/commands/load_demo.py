"""Submit the demo skills and make a collection of them, or write many invented ones."""

from __future__ import annotations

import asyncio
import json
from argparse import ArgumentTypeError
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar, Final

from asgiref.sync import async_to_sync
from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from marketplace.skills.publishers import skill_identity
from submissions.demo.collection import SLUG, make_demo_collection
from submissions.demo.many import MOST, Written, write_many
from submissions.demo.repository import DemoRepository, build_demo_repository, demo_path
from submissions.discovery import DiscoveredSkill, Discovery, discover
from submissions.intake import accept
from submissions.models import SubmissionEntry
from submissions.presentation import as_json
from submissions.source.errors import InvalidRepositoryURL
from submissions.states import LIVE_STATES
from submissions.store.queries import read_submission
from submissions.store.records import Submission
from submissions.verification.scan_keys import current_key, engines_of
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.kv.threads import readers, writers
from vskill.management.environment_command import EnvironmentCommand

INVENTED: Final = 2_000
_LOOKS_EACH: Final = 1.0


class Command(EnvironmentCommand):
    """Build the demo repository in the data directory and submit all its skills through ``intake``.

    With ``--skills`` write invented skills instead, past the queue.
    """

    all_by_default: ClassVar[bool] = True
    help = (
        "Submit a small repository of good and bad skills, so that the pages have something to show. Verification is "
        "done by the queue consumer. Once they are published, a collection is made of some, with --wait or when it is "
        "run again. Running it again submits nothing twice. An environment that accepts no "
        "repositories from the data directory is left out, and that is said. With --skills, write invented skills "
        "instead, to see how a large registry behaves: nothing of them is fetched or checked. Exit code 1: the demo "
        "could not be built, submitted or written."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments."""
        super().add_arguments(parser)
        self.add_json_argument(parser, documents="one JSON document instead of lines")
        parser.add_argument(
            "--skills",
            metavar="N",
            type=_number,
            nargs="?",
            const=INVENTED,
            help=f"write N invented skills (default: {INVENTED}) with versions, submissions and history",
        )
        parser.add_argument(
            "--wait",
            metavar="SECONDS",
            type=int,
            default=0,
            help="wait so long for the skills of the collection to be published (default: 0)",
        )
        parser.add_argument(
            "--among-real", action="store_true", help="write invented skills where there are others already"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Build the repository once and submit it in each environment."""
        with self.connections_given_back():
            try:
                if options["skills"] is None:
                    self._demo = async_to_sync(build_demo_repository)(demo_path(Path(settings.DATA_DIR)))
                reports = [self.run_in(env, options) for env in self.selected_environments(options)]
            except VskillError as error:
                raise CommandError(str(error)) from error
        if options["as_json"]:
            self.stdout.write(json.dumps({"environments": reports}))

    _demo: DemoRepository

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> dict[str, Any]:
        """Submit the demo in one environment and return the outcome of each skill, or write the invented ones."""
        if options["skills"] is not None:
            return await self._invent(env, options)
        told = not options["as_json"] and options["verbosity"]
        report: dict[str, Any] = {
            "environment": env.name,
            "repoUrl": self._demo.url,
            "commitSha": self._demo.commit_sha,
        }
        try:
            discovery = await discover(env, self._demo.url)
        except InvalidRepositoryURL as error:
            if options["environment"] is not None:
                raise
            if told:
                self.stdout.write(f"Demo: left out of {env.name!r}, which does not accept {self._demo.url}: {error}")
            return {**report, "leftOut": str(error), "skills": [], "collection": None}
        ended = await readers.run(_ended, env, discovery)
        paths = [skill.path for skill in discovery.skills if skill.path not in ended]
        answers = await accept(env, discovery, paths, source="demo", actor="load_demo")
        skills = [_as_json(env, skill, "ended", ended[skill.path]) for skill in discovery.skills if skill.path in ended]
        skills += [_as_json(env, one.skill, one.outcome, one.submission, one.reason) for one in answers]
        if told:
            self._print(env, skills)
        collection = SLUG if await _collected(env, discovery.repo_url, options["wait"]) else None
        if collection is None and not options["as_json"] and options["wait"]:
            self.stdout.write("Demo: no collection was made, as its skills are not published. Run load_demo again.")
        return {**report, "leftOut": None, "skills": skills, "collection": collection}

    async def _invent(self, env: WorkerEnv, options: Mapping[str, Any]) -> dict[str, Any]:
        wanted = options["skills"]

        def told(count: int) -> None:
            if self.stderr.isatty():
                self.stderr.write(f"\r{count} of {wanted} skills", ending="\n" if count == wanted else "")

        def write() -> Written:
            key = current_key(engines_of(env))
            return write_many(env, wanted, scan_key=key, among_real=options["among_real"], told=told)

        written = await writers.run(write)
        if not options["as_json"]:
            self.stdout.write(
                f"Demo: {written.skills} invented skills in {env.name!r}, with {written.versions} versions and "
                f"{written.submissions} submissions. Nothing of them was fetched or checked."
            )
        return {"environment": env.name, "invented": vars(written)}

    def _print(self, env: WorkerEnv, skills: list[dict[str, Any]]) -> None:
        counts = Counter(str(skill["outcome"]).replace("_", " ") for skill in skills)
        ends = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
        self.stdout.write(
            f"Demo: {len(skills)} skills of {self._demo.url} at {self._demo.commit_sha[:7]} in {env.name!r}: {ends}. "
            "Some have faults on purpose."
        )


async def _collected(env: WorkerEnv, repo_url: str, seconds: int) -> bool:
    """Return whether the demo has its collection, which its skills may need some time for."""
    deadline = monotonic() + seconds
    while not await writers.run(make_demo_collection, env, repo_url, actor="load_demo"):
        if monotonic() >= deadline:
            return False
        await asyncio.sleep(_LOOKS_EACH)
    return True


def _number(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= MOST:
        raise ArgumentTypeError(f"{text!r} is no number from 1 to {MOST}")
    return int(text)


def _ended(env: WorkerEnv, discovery: Discovery) -> dict[str, Submission]:
    """Return, by path, the newest submission of each skill if it has ended with exactly the same files.

    These are not submitted again. ``accept`` would take a refused skill every time, and the demo would repeat it.
    """
    ended: dict[str, Submission] = {}
    rows = SubmissionEntry.objects.using(env.database).live().filter(namespace=env.name)
    for skill in discovery.skills:
        identity = skill_identity(discovery.repo_url, skill.path)
        newest = rows.filter(identity=identity).order_by("-submitted_at", "-id").first()
        if newest is not None and newest.state not in LIVE_STATES:
            submission = read_submission(env, newest.submission_id)
            if submission.text("sourceDigest") == skill.source_digest:
                ended[skill.path] = submission
    return ended


def _as_json(
    env: WorkerEnv, skill: DiscoveredSkill, outcome: str, submission: Submission | None, reason: str = ""
) -> dict[str, Any]:
    return {
        "skillPath": skill.path,
        "skillName": skill.name,
        "outcome": outcome,
        "reason": reason,
        "submission": as_json(env, submission) if submission is not None else None,
    }
