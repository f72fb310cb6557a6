"""Add, list, test and remove the webhooks of an environment from a shell, and look at what was sent."""

from __future__ import annotations

import getpass
import json
from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser

from submissions.notification_models import NotificationDelivery, NotificationSubscription
from submissions.notifications.claims import redeliver
from submissions.notifications.deliver import send_test
from submissions.notifications.listing import attempt_as_json, delivery_as_json, log_of, subscription_as_json, webhooks
from submissions.notifications.rotation import HOURS, MOST_HOURS, end_earlier, rotate
from submissions.notifications.subscriptions import (
    Scope,
    Wish,
    add_webhook,
    checked_kinds,
    checked_url,
    enable,
    remove,
    subscription,
)
from submissions.outbox import Kind
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.kv.clock import database_now
from vskill.kv.threads import readers, writers
from vskill.management.environment_command import EnvironmentCommand

_MOST_SHOWN: Final = 50


class Command(EnvironmentCommand):
    """Webhooks of the operators: added, listed, tested, removed; their log, and sending again."""

    help = (
        "A webhook is told of what happens in an environment by a signed request (docs/notifications.md). Its secret "
        f"is printed once, when it is added. Events: {', '.join(Kind)}. The command `deliver` sends them."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the actions with their arguments."""
        super().add_arguments(parser)
        actions = parser.add_subparsers(dest="action", required=True)

        def action(name: str, words: str) -> ArgumentParser:
            added = actions.add_parser(name, help=words)
            added.add_argument("--json", action="store_true", dest="as_json", help="print one JSON document")
            return added

        adding = action("add", "send webhooks to an address, and print the secret that signs them")
        adding.add_argument("url", help="an https address")
        adding.add_argument("--event", action="append", dest="events", choices=list(Kind), help="default: all of them")
        adding.add_argument("--publisher", default="", metavar="HOST/OWNER", help="only what is of this publisher")
        adding.add_argument("--skill", default="", metavar="SLUG", help="only what is of this skill")
        adding.add_argument("--dry-run", action="store_true", help="check the address, and add nothing")
        action("list", "show all webhooks, those of persons too, without their secrets")
        for name, words in (
            ("test", "send an event of the type test now, and say how it was answered"),
            ("enable", "send to a webhook again that was disabled because it failed for days"),
            ("remove", "send nothing more to a webhook, and forget its secret"),
        ):
            action(name, words).add_argument("id", type=int, help="its number in the list")
        rotating = action(
            "rotate", "give a webhook of the operators a new secret, and print it; the one before signs too"
        )
        rotating.add_argument("id", type=int, help="its number in the list")
        rotating.add_argument(
            "--hours",
            type=int,
            default=HOURS,
            help=f"how long the secret before signs too; default: {HOURS}, at most {MOST_HOURS}; 0: no longer",
        )
        ending = action("end-earlier", "let the newest secret of a webhook alone sign from now on")
        ending.add_argument("id", type=int, help="its number in the list")
        showing = action("deliveries", "show what was sent, the newest first")
        showing.add_argument("id", type=int, nargs="?", help="only of this webhook")
        showing.add_argument("--state", choices=[NotificationDelivery.PENDING, "delivered", "failed"], default="")
        again = action("redeliver", "let a delivery be attempted again, under the same id")
        again.add_argument("id", type=int, help="its number in the list of deliveries")
        again.add_argument("--dry-run", action="store_true", help="show the delivery, and change nothing")

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        """Run the action in one environment; raise ``CommandError`` where it cannot be done."""
        try:
            await getattr(self, f"_{options['action'].replace('-', '_')}")(env, options)
        except VskillError as error:
            raise CommandError(str(error)) from error

    async def _add(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        if options["publisher"] and options["skill"]:
            raise CommandError("Name a publisher or a skill, not both. Nothing was added.")
        scope = Scope.SKILL if options["skill"] else Scope.PUBLISHER if options["publisher"] else Scope.EVERYTHING
        wish = Wish(options["events"] or list(Kind), scope, options["skill"] or options["publisher"])
        if options["dry_run"]:
            checked = {
                "url": checked_url(env, options["url"], of_operators=True),
                "events": checked_kinds(wish.kinds).split(),
            }
            self._say(options, {**checked, "dryRun": True}, f"{checked['url']} could be added; nothing was")
            return
        made, secret = await writers.run(add_webhook, env, options["url"], wish, created_by=getpass.getuser())
        if options["as_json"]:
            self.stdout.write(json.dumps({**await readers.run(_shown, env, made), "secret": secret}))
        else:
            self.stderr.write(f"Webhook {made.pk} for {made.label}. Its secret, shown this once:")
            self.stdout.write(secret)

    async def _list(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        found = await readers.run(lambda: [_shown(env, one) for one in webhooks(env)])
        lines = [
            f"{one['id']}  {one['url']}  {one['scope']}  {' '.join(one['events'])}  {one['state']}"
            + (f"  of {one['owner']}" if one["owner"] else "")
            + (f"  its secret before signs until {until}" if (until := one["earlierSecretSignsUntil"]) else "")
            for one in found
        ]
        self._say(options, {"webhooks": found}, "\n".join(lines) or f"{env.name}: there is no webhook")

    async def _test(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        state, sent = await send_test(env, options["id"])
        log = await readers.run(lambda: [attempt_as_json(one) for one in sent.log.all()])
        shown = {**delivery_as_json(sent), "attempts": log}
        self._say(options, shown, f"{sent.key}: {sent.said}")
        if state != NotificationDelivery.DELIVERED:
            raise CommandError("The test was not taken. It is tried again as any delivery is.")

    async def _enable(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        await self._change(env, options, lambda one: enable(env, one), "is enabled")

    async def _remove(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        await self._change(env, options, lambda one: remove(env, one, actor=getpass.getuser()), "is removed")

    async def _rotate(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        number, hours = options["id"], options["hours"]

        def work() -> tuple[dict[str, Any], str]:
            one = subscription(env, number)
            if one.owner_id is not None:
                raise CommandError(f"Webhook {number} is of {one.owner}, who rotates it at the account.")
            secret = rotate(env, one, actor=getpass.getuser(), hours=hours)
            return _shown(env, subscription(env, number)), secret

        shown, secret = await writers.run(work)
        if options["as_json"]:
            self.stdout.write(json.dumps({**shown, "secret": secret}))
        else:
            until = shown["earlierSecretSignsUntil"]
            also = f"The one before signs too until {until}." if until else "The one before signs no more."
            self.stderr.write(f"The new secret of webhook {number}, shown this once. {also}")
            self.stdout.write(secret)

    async def _end_earlier(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        await self._change(
            env,
            options,
            lambda one: end_earlier(env, one, actor=getpass.getuser()),
            "signs with its newest secret alone",
        )

    async def _change(
        self, env: WorkerEnv, options: Mapping[str, Any], change: Callable[[Any], object], words: str
    ) -> None:
        await writers.run(lambda: change(subscription(env, options["id"])))
        self._say(options, {"id": options["id"], "result": words}, f"webhook {options['id']} {words}")

    async def _deliveries(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        found = await readers.run(
            lambda: [delivery_as_json(one) for one in log_of(env, options["id"], options["state"])[:_MOST_SHOWN]]
        )
        lines = [
            f"{one['id']}  webhook {one['webhook']}  {one['type']}  {one['state']}, attempt {one['attempts']}  "
            f"{one['said']}"
            for one in found
        ]
        self._say(options, {"deliveries": found}, "\n".join(lines) or f"{env.name}: nothing was sent")

    async def _redeliver(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        if options["dry_run"]:
            rows = await readers.run(lambda: list(log_of(env).filter(pk=options["id"])))
            if not rows:
                raise CommandError(f"There is no delivery {options['id']}. Nothing was changed.")
            self._say(options, {**delivery_as_json(rows[0]), "dryRun": True}, f"{rows[0].key} would be sent again")
            return
        one = await writers.run(redeliver, env, options["id"])
        self._say(options, {"id": one.pk, "key": one.key}, f"{one.key} is due again, under the same id")

    def _say(self, options: Mapping[str, Any], document: Mapping[str, Any], words: str) -> None:
        self.stdout.write(json.dumps(document) if options["as_json"] else words)


def _shown(env: WorkerEnv, one: NotificationSubscription) -> dict[str, Any]:
    return subscription_as_json(one, database_now(env.database))
