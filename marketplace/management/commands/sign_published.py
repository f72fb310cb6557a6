"""Sign what is published and not signed yet, and append to the log what it lacks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from django.core.management.base import CommandError, CommandParser

from marketplace.provenance.keys import SigningKeyError
from marketplace.provenance.signing import sign_published
from vskill.environments import WorkerEnv
from vskill.kv.threads import writers
from vskill.management.environment_command import EnvironmentCommand


class Command(EnvironmentCommand):
    """Sign the versions that have no signature, append to the log of verdicts and withdrawals, and sign its head."""

    all_by_default: ClassVar[bool] = True
    help = (
        "Sign the versions that have no signature yet, append verdicts and withdrawals to the log, and sign its head. "
        "Running it twice, or killing it half-way, changes nothing. Without policy.signing_key_file it only keeps the "
        "log. Exit codes: 0 done, 1 the keys cannot be read."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments."""
        super().add_arguments(parser)
        self.add_json_argument(parser)

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        """Sign in one environment and print what was done."""
        try:
            done = await writers.run(sign_published, env)
        except SigningKeyError as error:
            raise CommandError(f"{env.name}: {error} Nothing was signed; the log is kept.") from error
        if options["as_json"]:
            told = {"signed": done.versions, "appended": done.entries, "left": done.left, "signedAnew": done.anew}
            self.stdout.write(json.dumps({"environment": env.name, **told}))
        elif options["verbosity"]:
            self.stdout.write(
                f"{env.name}: {done.versions} versions signed, {done.left} left; {done.entries} entries appended"
                + (f"; {done.anew} versions signed anew" if done.anew else "")
            )
