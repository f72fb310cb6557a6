"""Run the whole product: web server, consumer and scheduler, as children of one process."""

from __future__ import annotations

import argparse
import json
import signal
import socket
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any, Final

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from vskill.configuration import load
from vskill.environments import all_environments, databases_in_use
from vskill.management.health_probe import HealthProbe, NotServed, served_name
from vskill.processes.process_group import ProcessGroup
from vskill.processes.single_instance import AlreadyRunning, only_instance
from vskill.variable_kinds import Fault, integer

# Seconds. The first start compiles every module, perhaps on a busy machine.
START_LIMIT: Final = 60.0
# Seconds for the checks of the demo's skills; scans share two slots, and a slow machine takes minutes.
DEMO_LIMIT: Final = 300


class Command(BaseCommand):
    """Start everything, print the addresses, and stop everything on Ctrl-C."""

    help = (
        "Run web server, queue consumer and scheduler together, on SQLite unless DATABASE_URL says otherwise. "
        "The first start makes the tables, an admin with a random password, and loads a demo (DEMO=0 leaves it out)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments."""
        parser.add_argument("--host", default=settings.HOST, help="address to listen on (HOST, default %(default)s)")
        parser.add_argument(
            "--port", type=_port, default=settings.PORT, help="port to listen on (PORT, default %(default)s)"
        )
        parser.add_argument("--no-demo", action="store_true", help="do not load the demo (as DEMO=0)")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Start the instance, unless another one runs on the same data directory."""
        try:
            with only_instance(settings.DATA_DIR, _listening(options)):
                self._run(options)
        except AlreadyRunning as error:
            raise CommandError(f"Nothing was started: {error}") from error

    def _run(self, options: dict[str, Any]) -> None:
        """Migrate the databases, start the children, and watch them until they are stopped."""
        _check_port(options["host"], options["port"])
        probe = HealthProbe(_reached(options["host"]), options["port"], all_environments().values())
        listening = {"HOST": options["host"], "PORT": str(options["port"])}
        group = ProcessGroup(self._commands(options["host"], options["port"]), listening)

        def on_signal(_number: int, _frame: FrameType | None) -> None:
            group.stop()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, on_signal)
        try:
            self._migrate(group)
            if not group.stopping:
                group.start()
            self._wait_until_healthy(group, probe)
            if not group.stopping:
                # Not earlier: the password is shown only once, and a failed start would not show it.
                self._welcome(_listening(options), _visited(options), self._first_admin(group))
                if settings.DEMO and not options["no_demo"]:
                    self._load_demo(group)
            group.watch()
        finally:
            group.end()
        if group.failed:
            raise CommandError(group.failed)
        self.stdout.write("vskill has ended; nothing that was accepted is lost.")

    def _migrate(self, group: ProcessGroup) -> None:
        for alias in databases_in_use():
            command = _manage("migrate", "--skip-checks", "--no-input", "--verbosity", "0", "--database", alias)
            code, _output = group.run_step(command)
            if group.stopping:
                return
            if code:
                raise CommandError(
                    f"Nothing was started: the tables of the database {alias!r} could not be made; see the message "
                    "above."
                )

    def _commands(self, host: str, port: int) -> dict[str, list[str]]:
        web = [sys.executable, "-m", "uvicorn", "vskill.asgi:application", "--host", host, "--port", str(port)]
        web += ["--lifespan", "off", "--no-server-header", "--log-level", "warning", "--timeout-graceful-shutdown", "5"]
        # vskill finds out the addresses of clients itself; see VSKILL_TRUSTED_PROXIES.
        web += ["--no-proxy-headers"]
        return {"web": web, "consumer": _manage("consume"), "scheduler": _manage("schedule")}

    def _first_admin(self, group: ProcessGroup) -> str | None:
        """Make the first admin and return the password, or ``None`` where there is an admin already."""
        _code, printed = group.run_step(_manage("first_admin", "--skip-checks"), keep_output=True)
        return str(json.loads(printed)["password"]) if printed else None

    def _wait_until_healthy(self, group: ProcessGroup, probe: HealthProbe) -> None:
        deadline = time.monotonic() + START_LIMIT
        dead = ["web"]
        while dead and not group.stopping:
            if (failed := group.ended()) is not None:
                raise CommandError(f"{failed} ended while starting; see its message above.")
            if time.monotonic() > deadline:
                raise CommandError(f"Not everything came up within {START_LIMIT:g} s: {', '.join(dead)} did not.")
            try:
                dead = probe.dead_parts()
            except NotServed as error:
                raise CommandError(str(error)) from error
            if dead:
                time.sleep(0.1)

    def _welcome(self, listening: str, address: str, password: str | None) -> None:
        write, strong = self.stdout.write, self.style.SUCCESS
        write("")
        write(f"  {strong('vskill')} runs at {strong(address)}")
        if address != listening:
            write(f"            and listens on {listening}")
        write("")
        if password is not None:
            write(f"  Admin     {address}/admin/   user {strong('admin')}   password {strong(password)}")
            write("            shown once; change it there, or with: .venv/bin/python manage.py changepassword admin")
        else:
            write(
                f"  Admin     {address}/admin/   (password forgotten? .venv/bin/python manage.py changepassword admin)"
            )
        write(
            f"  Submit    {address}/submit   or: .venv/bin/python manage.py submit https://github.com/owner/repository"
        )
        write(f"  Skills    {address}/skills   and {address}/api/v1/skills")
        write(f"  Health    {address}/healthz")
        write(f"  Data      {settings.DATA_DIR}")
        write("  Ctrl-C ends it; what was accepted is kept.")
        write("")
        self.stdout.flush()

    def _load_demo(self, group: ProcessGroup) -> None:
        marker = Path(settings.DATA_DIR) / "demo-loaded"
        if marker.exists():
            return
        code, _output = group.run_step(_manage("load_demo", "--skip-checks"))
        if group.stopping:
            return
        if code:
            self.stderr.write("The demo was not loaded, and is tried again at the next start; see the message above.")
            return

        def ended(code: int) -> None:
            if code == 0:
                marker.touch()

        # Its collection is made beside the others, whose checks of its skills it waits for.
        collect = ("load_demo", "--skip-checks", "--verbosity", "0", "--wait", str(DEMO_LIMIT))
        group.run_beside(_manage(*collect), ended)


def _manage(*arguments: str) -> list[str]:
    return [sys.executable, str(settings.BASE_DIR / "manage.py"), *arguments]


def _check_port(host: str, port: int) -> None:
    """Raise ``CommandError`` where the port cannot be bound: a server already there would pass our health check."""
    try:
        family, kind, protocol, _name, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise CommandError(
            f"Nothing was started: port {port} of {host} cannot be used ({error.strerror or error}). "
            "Choose another one with PORT."
        ) from error


def _port(text: str) -> int:
    """Read ``--port`` as the variable PORT is read."""
    try:
        return int(integer(minimum=1, maximum=65535).read(text))
    except Fault as fault:
        raise argparse.ArgumentTypeError(str(fault)) from fault


def _listening(options: dict[str, Any]) -> str:
    """Return the address on which the server listens, as this machine reaches it."""
    return f"http://{_reached(options['host'])}:{options['port']}"


def _visited(options: dict[str, Any]) -> str:
    """Return the address that visitors use: the public URL where one was set, else a name that is answered."""
    environment = next(iter(all_environments().values()))
    given = load()
    if environment.public_url and any(
        given[name].source != "default" for name in ("VSKILL_PUBLIC_URL", "VSKILL_ENVIRONMENTS")
    ):
        return environment.public_url
    name = served_name(environment)
    reached = _reached(options["host"])
    answered = name is None or reached in environment.hosts or "*" in environment.hosts
    return f"http://{reached if answered else name}:{options['port']}"


def _reached(host: str) -> str:
    """Return the host part of a URL by which this machine reaches a server that listens on ``host``."""
    if host in ("0.0.0.0", "::", ""):  # noqa: S104 - a comparison, nothing is bound
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
