"""Make the keys that a registry signs with, list those that it has signed with, and revoke those that were stolen."""

from __future__ import annotations

import getpass
import json
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from django.core.management.base import CommandError, CommandParser

from marketplace.provenance.compromise import Revocation, Revoked, revoke, would_revoke
from marketplace.provenance.keys import SigningKeyError, key_id, public_pem, write_keys
from marketplace.provenance.known_keys import known_keys
from vskill.environments import WorkerEnv
from vskill.kv.clock import isoformat, parse_isoformat
from vskill.kv.threads import readers, writers
from vskill.management.environment_command import EnvironmentCommand
from vskill.management.progress import progress_bar

NOT_ALL_VOUCHED = 2
# Of what cannot be vouched for; --json has all of it.
_MOST_SHOWN = 20


class Command(EnvironmentCommand):
    """Make a file with new signing keys, list the public keys of an environment, or revoke stolen ones."""

    all_by_default: ClassVar[bool] = True
    help = (
        "create: make a new file with two private keys, Ed25519 for statements and the log, P-256 for the files of "
        "versions, which its owner alone may read. list: the public keys that an environment has signed with. revoke: "
        "trust nothing that a key signed from a time on, because somebody else may have it; put new keys into the "
        "file, sign anew what the registry can vouch for, and tell of it in the log and in the list of keys. Run "
        "again, it goes on where it ended. Exit codes of revoke: 0 done, 1 a file of keys cannot be replaced, 2 "
        "something cannot be vouched for and was not signed anew, or the log disagrees with what was signed of it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments."""
        actions = parser.add_subparsers(dest="action", required=True)
        create = actions.add_parser("create", help="make a new file with keys; no file is ever written over")
        create.add_argument("--to", metavar="FILE", required=True, help="the file to make")
        listing = actions.add_parser("list", help="list the public keys")
        revoking = actions.add_parser("revoke", help="trust no signature of a key from a time on, and replace it")
        revoking.add_argument(
            "names", metavar="KEY", nargs="+", help="name of a key, or its beginning; name both of a stolen file"
        )
        revoking.add_argument(
            "--since",
            metavar="TIME",
            help="when somebody else may have had it first, such as 2026-11-20T08:00Z; by default always",
        )
        revoking.add_argument("--reason", default="", help="why; it is kept in the history, and not in the log")
        revoking.add_argument("--dry-run", action="store_true", help="say what would be done, and change nothing")
        for action in (listing, revoking):
            super().add_arguments(action)
            self.add_json_argument(action)

    def handle(self, *args: Any, **options: Any) -> None:
        """Make keys, or list or revoke them in an environment."""
        if options["action"] == "list":
            super().handle(*args, **options)
        elif options["action"] == "revoke":
            self._revoke(options)
        else:
            self._create(Path(options["to"]).absolute())

    def _create(self, path: Path) -> None:
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

    def _revoke(self, options: Mapping[str, Any]) -> None:
        asked = Revocation(tuple(options["names"]), _since(options), getpass.getuser(), options["reason"])
        reports = []
        with self.connections_given_back():
            for env in self.selected_environments(options):
                with progress_bar(f"signing anew in {env.name}", quiet=options["as_json"]) as progress:
                    reports.append(self.run_in(env, {**options, "asked": asked, "progress": progress}))
                self._print(reports[-1], options)
        if not any(one.keys for one in reports):
            raise CommandError(
                "No environment has signed with a key of that name. Nothing was changed; 'signing_key list' has all."
            )
        if any(one.doubted or one.faults for one in reports):
            sys.exit(NOT_ALL_VOUCHED)

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> Revoked | None:
        """List the keys of one environment, or revoke some and return what became of what they signed."""
        if options["action"] == "revoke":
            act, threads = (would_revoke, readers) if options["dry_run"] else (revoke, writers)
            try:
                return await threads.run(act, env, options["asked"], options["progress"])
            except SigningKeyError as error:
                raise CommandError(f"{env.name}: {error}") from error
        rows = await readers.run(known_keys, env)
        if options["as_json"]:
            told = [
                {
                    "keyId": row.key_id,
                    "algorithm": row.algorithm,
                    "since": isoformat(row.since),
                    "until": isoformat(row.until) if row.until else None,
                    "compromisedSince": isoformat(row.compromised_since) if row.compromised_since else None,
                }
                for row in rows
            ]
            self.stdout.write(json.dumps({"environment": env.name, "keys": told}))
            return None
        for row in rows:
            until = f"until {isoformat(row.until)}" if row.until else "signs now"
            if row.compromised_since:
                until += f", compromised from {isoformat(row.compromised_since)} on"
            self.stdout.write(f"{env.name}: {row.key_id} {row.algorithm}, since {isoformat(row.since)}, {until}")
        if not rows:
            self.stdout.write(f"{env.name} has signed nothing yet.")
        return None

    def _print(self, done: Revoked, options: Mapping[str, Any]) -> None:
        dry_run = options["dry_run"]
        if options["as_json"]:
            self.stdout.write(json.dumps({**done.as_json(), "dryRun": dry_run}))
            return
        is_word, was = ("would be", "would be") if dry_run else ("is", "were")
        for key in done.keys:
            self.stdout.write(
                f"{done.environment}: {key['keyId']} {key['algorithm']} {is_word} compromised from "
                f"{key['compromisedSince']} on"
            )
        if not done.keys:
            self.stdout.write(f"{done.environment} has signed with none of these keys.")
            return
        later = sum(not one.before for one in done.versions)
        self.stdout.write(
            f"{done.environment}: of {len(done.versions)} versions that they signed, {later} from then on, {done.anew} "
            f"{was} signed anew; entries {done.entries_before} to {done.entries_signed} of the log stood under no "
            "earlier head"
        )
        for one in done.doubted[:_MOST_SHOWN]:
            self.stdout.write(f"{one.skill} {one.version} {was} not signed anew: {one.outcome}")
        if len(done.doubted) > _MOST_SHOWN:
            self.stdout.write(f"and {len(done.doubted) - _MOST_SHOWN} more; --json names all")
        for fault in done.faults:
            self.stdout.write(f"the log disagrees with what was signed of it: {fault}")
        if done.kept_file:
            self.stdout.write(f"The former keys are kept in {done.kept_file}; delete that when nobody needs it.")
        if done.new_keys:
            names = " and ".join(done.new_keys)
            self.stdout.write(f"It signs with {names}: tell whoever keeps a key of this registry.")


def _since(options: Mapping[str, Any]) -> datetime | None:
    if options["since"] is None:
        return None
    found = parse_isoformat(options["since"])
    if found is None:
        raise CommandError(f"{options['since']!r} is no time such as 2026-11-20T08:00Z. Nothing was changed.")
    return found
