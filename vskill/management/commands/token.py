"""Make, list and revoke access tokens from a shell."""

from __future__ import annotations

import getpass
import json
from collections.abc import Mapping
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import CommandError, CommandParser

from vskill.access_tokens.scopes import MEANINGS, Scope, UnknownScope, scopes_of
from vskill.access_tokens.tokens import DEFAULT_DAYS, TokenNotMade, make_token, revoke, tokens_of
from vskill.environments import WorkerEnv
from vskill.kv.threads import readers, writers
from vskill.management.environment_command import EnvironmentCommand


class Command(EnvironmentCommand):
    """Make, list and revoke access tokens."""

    help = (
        "A token lets a program work in the name of a user: docs/tokens.md. It is printed once, when it is made, and "
        f"stored nowhere. Scopes: {'; '.join(f'{scope}: {meaning}' for scope, meaning in MEANINGS.items())}."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the actions ``create``, ``list`` and ``revoke`` with their arguments."""
        super().add_arguments(parser)
        actions = parser.add_subparsers(dest="action", required=True)
        creating = actions.add_parser("create", help="make a token, and print it")
        creating.add_argument("user", help="whose token it is, by name")
        creating.add_argument("--name", default="made on the server", help="by which it is found again in lists")
        creating.add_argument("--scope", action="append", dest="scopes", metavar="SCOPE", help="default: read, submit")
        creating.add_argument("--days", type=int, default=DEFAULT_DAYS, help="how long it is valid")
        listing = actions.add_parser("list", help="show the tokens of an environment, without the tokens themselves")
        listing.add_argument("--user", default="", help="only those of this user")
        revoking = actions.add_parser("revoke", help="end a token at once")
        revoking.add_argument("id", type=int, help="its number in the list")
        revoking.add_argument("--reason", required=True, help="why; it is kept beside the token")
        for action in (creating, listing, revoking):
            action.add_argument("--json", action="store_true", dest="as_json", help="print one JSON document")

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        """Run the action in one environment; raise ``CommandError`` where it cannot be done."""
        try:
            await getattr(self, f"_{options['action']}")(env, options)
        except (TokenNotMade, UnknownScope) as error:
            raise CommandError(str(error)) from error

    async def _create(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        scopes = scopes_of(options["scopes"] or [Scope.READ, Scope.SUBMIT])

        def make() -> tuple[dict[str, Any], str]:
            row, token = make_token(
                env, _user(options["user"]), name=options["name"], scopes=scopes, days=options["days"]
            )
            return row.as_json(), token

        shown, token = await writers.run(make)
        if options["as_json"]:
            self.stdout.write(json.dumps({**shown, "token": token}))
        else:
            self.stderr.write(f"Token {shown['id']} for {', '.join(shown['scopes'])}, shown this once:")
            self.stdout.write(token)

    async def _list(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        def read() -> list[dict[str, Any]]:
            rows = tokens_of(env)
            if options["user"]:
                rows = rows.filter(user=_user(options["user"]))
            return [row.as_json() for row in rows]

        found = await readers.run(read)
        if options["as_json"]:
            self.stdout.write(json.dumps({"tokens": found}))
            return
        for one in found:
            used = f"last used {one['lastUsedAt'][:16]}" if one["lastUsedAt"] else "never used"
            self.stdout.write(
                f"{one['id']}  {one['user']}  {one['name']}  {' '.join(one['scopes'])}  {one['state']}, "
                f"until {one['expiresAt'][:10]}, {used}"
            )
        if not found:
            self.stdout.write(f"{env.name}: there is no token")

    async def _revoke(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        number = options["id"]

        def end() -> bool:
            row = tokens_of(env).filter(pk=number).first()
            if row is None:
                raise CommandError(f"There is no token {number} in {env.name!r}; nothing was changed.")
            return revoke(row, actor=getpass.getuser(), reason=options["reason"])

        ended = await writers.run(end)
        if options["as_json"]:
            self.stdout.write(json.dumps({"id": number, "result": "revoked" if ended else "revoked before"}))
        else:
            self.stdout.write(f"token {number} is revoked" if ended else f"token {number} had been revoked before")


def _user(name: str) -> Any:
    found = get_user_model()._default_manager.filter(username=name).first()
    if found is None:
        raise CommandError(f"There is no user {name!r}; nothing was changed.")
    return found
