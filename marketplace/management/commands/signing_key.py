"""Make the keys that a registry signs with, and list those that it has signed with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from marketplace.provenance.keys import SigningKeyError, key_id, public_pem, write_keys
from marketplace.provenance.known_keys import known_keys
from vskill.environments import WorkerEnv
from vskill.kv.clock import isoformat
from vskill.kv.threads import readers
from vskill.management.environment_command import EnvironmentCommand


class Command(EnvironmentCommand):
    """Make a file with new signing keys, or list the public keys of an environment."""

    help = (
        "create: make a new file with two private keys, Ed25519 for statements and the log, P-256 for the files of "
        "versions, which its owner alone may read. list: the public keys that an environment has signed with."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments."""
        actions = parser.add_subparsers(dest="action", required=True)
        create = actions.add_parser("create", help="make a new file with keys; no file is ever written over")
        create.add_argument("--to", metavar="FILE", required=True, help="the file to make")
        listing = actions.add_parser("list", help="list the public keys")
        super().add_arguments(listing)
        self.add_json_argument(listing)

    def handle(self, *args: Any, **options: Any) -> None:
        """Make keys, or list them in an environment."""
        if options["action"] == "list":
            super().handle(*args, **options)
            return
        path = Path(options["to"]).absolute()
        try:
            made = write_keys(path)
        except SigningKeyError as error:
            raise CommandError(str(error)) from error
        for key in (made.statements, made.files):
            self.stdout.write(f"{key_id(public_pem(key.public_key()))}")
        self.stdout.write(
            f"{path} holds these two keys. Name it in VSKILL_SIGNING_KEY_FILE, or in policy.signing_key_file of an "
            "environment, and keep a copy where nobody else reads it: who has it signs as this registry."
        )

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        """Print the keys of one environment."""
        rows = await readers.run(known_keys, env)
        if options["as_json"]:
            told = [
                {
                    "keyId": row.key_id,
                    "algorithm": row.algorithm,
                    "since": isoformat(row.since),
                    "until": isoformat(row.until) if row.until else None,
                }
                for row in rows
            ]
            self.stdout.write(json.dumps({"environment": env.name, "keys": told}))
            return
        for row in rows:
            until = f"until {isoformat(row.until)}" if row.until else "signs now"
            self.stdout.write(f"{row.key_id} {row.algorithm}, since {isoformat(row.since)}, {until}")
        if not rows:
            self.stdout.write(f"{env.name} has signed nothing yet.")
