"""List, grant and revoke claims of publishers from a shell."""

from __future__ import annotations

import getpass
import json
from collections.abc import Mapping
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import CommandError, CommandParser

from marketplace.models import PublisherClaim, SkillEntry
from marketplace.models.ownership import PROVEN
from marketplace.ownership.claims import ClaimRefused, end, grant, owner_claim
from marketplace.skills.handles import present_handle
from marketplace.skills.publishers import owner_identity, publisher_of
from vskill.environments import WorkerEnv
from vskill.kv.clock import isoformat
from vskill.kv.threads import readers, writers
from vskill.management.environment_command import EnvironmentCommand


class Command(EnvironmentCommand):
    """List, grant and revoke claims."""

    help = (
        "A claim says which account a publisher belongs to: docs/ownership.md. People claim at /account/publishers, by "
        "a proof. `grant` gives a publisher to an account without one, `revoke` ends a claim. A publisher is written "
        "as its handle (acme, platform.git.corp.example) or as host/owner (github.com/acme)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the actions ``list``, ``grant`` and ``revoke`` with their arguments."""
        super().add_arguments(parser)
        actions = parser.add_subparsers(dest="action", required=True)
        listing = actions.add_parser("list", help="show who has which publisher, and which claims wait")
        listing.add_argument("--waiting", action="store_true", help="those that are not proven yet as well")
        granting = actions.add_parser("grant", help="give a publisher to an account, without a proof")
        granting.add_argument("publisher", help="its handle, or host/owner")
        granting.add_argument("user", help="the account, by name")
        revoking = actions.add_parser("revoke", help="end the claim of a publisher")
        revoking.add_argument("publisher", help="its handle, or host/owner")
        for action in (granting, revoking):
            action.add_argument("--reason", required=True, help="why; it is kept in the history")
            action.add_argument("--dry-run", action="store_true", help="say what would be done, and change nothing")
        for action in (listing, granting, revoking):
            action.add_argument("--json", action="store_true", dest="as_json", help="print one JSON document")

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        """Run the action in one environment; raise ``CommandError`` where it cannot be done."""
        try:
            await getattr(self, f"_{options['action']}")(env, options)
        except ClaimRefused as error:
            raise CommandError(str(error)) from error

    async def _list(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        def read() -> list[dict[str, Any]]:
            rows = PublisherClaim.objects.using(env.database).filter(namespace=env.name)
            states = (PROVEN, "waiting") if options["waiting"] else (PROVEN,)
            return [_as_json(row) for row in rows.filter(state__in=states).order_by("pk")]

        found = await readers.run(read)
        if options["as_json"]:
            self.stdout.write(json.dumps({"claims": found}))
            return
        for one in found:
            since = one["provenAt"][:10] if one["provenAt"] else "not proven"
            self.stdout.write(f"{one['publisher']}  {one['handle']}  {one['account']}  {since}  {one['proof'] or '-'}")
        if not found:
            self.stdout.write(f"{env.name}: nobody has claimed a publisher")

    async def _grant(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        def give() -> dict[str, Any]:
            user = get_user_model()._default_manager.filter(username=options["user"]).first()
            if user is None:
                raise CommandError(f"There is no user {options['user']!r}; nothing was changed.")
            publisher, handle = _publisher(env, options["publisher"])
            if options["dry_run"]:
                present = owner_claim(env, publisher)
                held = present.account_name if present is not None else None
                return {"publisher": publisher, "handle": handle, "account": options["user"], "heldBy": held}
            return _as_json(grant(env, user, publisher, handle, actor=getpass.getuser(), reason=options["reason"]))

        done = await writers.run(give)
        would = "would be" if options["dry_run"] else "is"
        self._say(options, done, f"{done['publisher']} {would} given to {done['account']}")

    async def _revoke(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        def take() -> dict[str, Any]:
            publisher, _handle = _publisher(env, options["publisher"])
            claim = owner_claim(env, publisher)
            if claim is None:
                raise CommandError(f"Nobody has claimed {publisher} in {env.name!r}; nothing was changed.")
            if not options["dry_run"]:
                end(env, claim, actor=getpass.getuser(), reason=options["reason"])
            return _as_json(claim)

        done = await writers.run(take)
        would = "would be" if options["dry_run"] else "is"
        self._say(options, done, f"the claim of {done['publisher']} by {done['account']} {would} ended")

    def _say(self, options: Mapping[str, Any], done: dict[str, Any], line: str) -> None:
        document = {**done, "dryRun": bool(options["dry_run"])}
        self.stdout.write(json.dumps(document) if options["as_json"] else line)


def _publisher(env: WorkerEnv, written: str) -> tuple[str, str]:
    """Return the identity and the handle of a publisher that somebody wrote as either."""
    if "/" in written:
        owner = owner_identity(written)
        scheme = {"local": "file:///", "account": "upload://"}.get(owner.partition("/")[0], "https://")
        return owner, publisher_of(f"{scheme}{owner}/x").handle
    handle = present_handle(env, written)
    rows = SkillEntry.objects.using(env.database).filter(namespace=env.name, publisher_handle=handle)
    identity = rows.exclude(publisher="").values_list("publisher", flat=True).first()
    if identity is None:
        raise CommandError(f"No skill of {written!r} is published in {env.name!r}. Write it as host/owner instead.")
    return identity, handle


def _as_json(row: PublisherClaim) -> dict[str, Any]:
    return {
        "publisher": row.publisher,
        "handle": row.handle,
        "account": row.account_name,
        "state": row.state,
        "proof": row.proof or None,
        "evidence": row.evidence or None,
        "provenAt": isoformat(row.proven_at) if row.proven_at else None,
        "expiresAt": isoformat(row.expires_at) if row.state == "waiting" else None,
    }
