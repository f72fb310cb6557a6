"""Verify what is signed of one version: files, keys, statement and log."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from marketplace.catalog import find_skill_sync
from marketplace.models import SkillVersion
from marketplace.provenance.keys import PublicKey, SigningKeyError, key_id, load_public
from marketplace.provenance.verification import Check, verify_version
from vskill.environments import WorkerEnv
from vskill.kv.threads import readers
from vskill.management.environment_command import EnvironmentCommand

HOLDS, BROKEN, UNSIGNED = 0, 2, 3


class Command(EnvironmentCommand):
    """Check one version against its archives, its signatures, its keys and the log, without any network."""

    help = (
        "Check that the archives of a version are the ones that were verified, that its statement and the signature of "
        "its files are by a key of this registry, and that its publication is in the signed log. Needs no network and "
        "changes nothing. Exit codes: 0 all of it holds, 2 something does not, 3 what is there holds and something is "
        "not signed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments."""
        super().add_arguments(parser)
        parser.add_argument("slug", help="the skill, by its name in addresses")
        parser.add_argument("number", metavar="version", help="the version")
        parser.add_argument(
            "--public-key",
            metavar="FILE",
            action="append",
            default=[],
            help="believe this public key (PEM), and none of those in the database; can be given more than once",
        )
        self.add_json_argument(parser, documents="one JSON document")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Verify in one environment and exit with the gravest code."""
        with self.connections_given_back():
            [env] = self.selected_environments(options)
            checks: list[Check] = self.run_in(env, options)
        if any(one.holds is False for one in checks):
            sys.exit(BROKEN)
        if any(one.holds is None for one in checks):
            sys.exit(UNSIGNED)

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> list[Check]:
        """Verify and print what was found."""
        trusted = _keys(options["public_key"])
        version = await readers.run(_version, env, options["slug"], options["number"])
        checks = await readers.run(verify_version, env, version, trusted)
        if options["as_json"]:
            told = [{"check": one.name, "holds": one.holds, "detail": one.detail} for one in checks]
            self.stdout.write(json.dumps({"skill": options["slug"], "version": version.version, "checks": told}))
            return checks
        words = {True: "holds", False: "DOES NOT HOLD", None: "not signed"}
        for one in checks:
            self.stdout.write(f"{one.name}: {words[one.holds]}: {one.detail}")
        return checks


def _version(env: WorkerEnv, slug: str, number: str) -> SkillVersion:
    # Withheld and private ones too: an operator asks.
    skill = find_skill_sync(env, slug, every=True)
    versions = SkillVersion.objects.using(env.database).filter(namespace=env.name, skill=skill, version=number)
    found = versions.select_related("skill").first() if skill is not None else None
    if found is None:
        raise CommandError(f"{env.name} has no version {number!r} of {slug!r}.")
    return found


def _keys(files: list[str]) -> dict[str, PublicKey] | None:
    if not files:
        return None
    found: dict[str, PublicKey] = {}
    for name in files:
        try:
            pem = Path(name).read_text(encoding="ascii")
            found[key_id(pem)] = load_public(pem)
        except (OSError, UnicodeDecodeError, SigningKeyError) as error:
            raise CommandError(f"{name} is no public key that can be used: {error}") from error
    return found
