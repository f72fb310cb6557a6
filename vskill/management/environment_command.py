"""The base class of management commands that work inside an environment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

from asgiref.sync import async_to_sync
from django.core.checks import Tags
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections

from vskill.environments import UnknownEnvironment, WorkerEnv, all_environments, get_environment
from vskill.kv.threads import close_database_threads
from vskill.processes.garbage import seldom_collected
from vskill.unprepared_database import DatabaseNotPrepared, require_prepared, unprepared_databases_named
from vskill.worker_context import run_with_worker_env


class EnvironmentCommand(BaseCommand):
    """A command that runs inside the environment that ``--environment`` names.

    A subclass implements the coroutine method ``work``. ``handle`` runs it once for each selected environment, one
    after another, in the scope of that environment and on a new event loop. A command that serves several environments
    at once, or sums up over them, overrides ``handle`` and calls ``selected_environments`` and ``run_in`` itself,
    within ``connections_given_back``.

    Without ``--environment`` a command runs in every configured environment, in the order of the settings, where
    ``all_by_default`` is true, and otherwise in the only one. Where there are several, it does not guess.
    """

    all_by_default: ClassVar[bool] = False
    # Those of ours: what an operator may have set wrong. What Django looks for lies in the code and not in an
    # installation; `manage.py check` finds it, and each page and each admin would be read for it at every start.
    requires_system_checks: list[str] = [Tags.compatibility]  # noqa: RUF012 - as Django declares it

    def add_arguments(self, parser: CommandParser) -> None:
        """Add ``--environment``; a subclass with its own arguments calls this first."""
        default = "every configured one" if self.all_by_default else "the only one there is"
        parser.add_argument("--environment", metavar="NAME", help=f"environment to work in (default: {default})")

    def add_json_argument(self, parser: CommandParser, *, documents: str = "one JSON document an environment") -> None:
        """Add ``--json``, which sets ``as_json``; ``documents`` says what is then printed."""
        parser.add_argument("--json", action="store_true", dest="as_json", help=f"print {documents}")

    def selected_environments(self, options: Mapping[str, Any]) -> list[WorkerEnv]:
        """Return the environments to work in.

        Raises ``CommandError`` for a name that is not configured, and for a missing name where one is needed.
        """
        name: str | None = options.get("environment")
        if name is not None:
            try:
                return [get_environment(name)]
            except UnknownEnvironment as error:
                raise CommandError(str(error)) from error
        every = list(all_environments().values())
        if self.all_by_default or len(every) == 1:
            return every
        known = ", ".join(env.name for env in every)
        raise CommandError(f"Nothing was done: name one of the environments with --environment. Configured: {known}.")

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command as Django does; a database that is not prepared ends it with advice in one line.

        Meanwhile the garbage collector runs less often.
        """
        with unprepared_databases_named(), seldom_collected():
            return super().execute(*args, **options)

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> Any:
        """Do the work in ``env``, which is the current environment; ``run_in`` returns the result."""
        raise NotImplementedError(f"{type(self).__name__} has no work.")

    def run_in(self, env: WorkerEnv, options: Mapping[str, Any]) -> Any:
        """Run ``work`` inside the scope of ``env`` and return its result."""

        async def main() -> Any:
            return await run_with_worker_env(env, self.work, env, options)

        return async_to_sync(main)()

    def refuse_unprepared(self, environments: Iterable[WorkerEnv]) -> None:
        """Raise ``CommandError`` where a database of ``environments`` is not prepared; commands that run on call it."""
        try:
            require_prepared(dict.fromkeys(env.database for env in environments))
        except DatabaseNotPrepared as error:
            raise CommandError(f"Nothing was started. {error}") from error

    def handle(self, *args: Any, **options: Any) -> None:
        """Run ``work`` in each selected environment."""
        with self.connections_given_back():
            for env in self.selected_environments(options):
                self.run_in(env, options)

    @contextmanager
    def connections_given_back(self) -> Iterator[None]:
        """Close each connection that the body opened, when the body ends.

        This includes those of the threads for database work. Connections that this thread held before stay open.
        """
        held = {
            connection.alias
            for connection in connections.all(initialized_only=True)
            if connection.connection is not None
        }
        try:
            yield
        finally:
            close_database_threads()
            for connection in connections.all(initialized_only=True):
                if connection.alias not in held:
                    connection.close()
