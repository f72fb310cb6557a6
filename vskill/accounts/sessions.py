"""Sessions that belong to the environment in which they were begun; this module is the ``SESSION_ENGINE``."""

from __future__ import annotations

from typing import Any, Final

from django.contrib.sessions.backends.db import SessionStore as DatabaseSessionStore

from vskill.environments import all_environments
from vskill.worker_context import get_worker_env

_ENVIRONMENT: Final = "vskill_environment"


def _here() -> str:
    """Return the name of the current environment; outside any, that of the only one, and empty where there are more."""
    if (env := get_worker_env()) is not None:
        return env.name
    names = list(all_environments())
    return names[0] if len(names) == 1 else ""


class SessionStore(DatabaseSessionStore):
    """Keep sessions in the database, each for one environment: in another one it is as if it did not exist.

    Its key is then dropped, so that nothing there overwrites or deletes the session.
    """

    def encode(self, session_dict: dict[str, Any]) -> str:
        """Return what is stored, signed, with the name of the environment in it."""
        return super().encode({**session_dict, _ENVIRONMENT: _here()})

    def load(self) -> dict[str, Any]:
        """Return the content of the session, empty where it is of another environment or has ended."""
        return self._of_here(super().load())

    async def aload(self) -> dict[str, Any]:
        """Return the content of the session; see ``load``."""
        return self._of_here(await super().aload())

    def flush(self) -> None:
        """End the session; one of another environment stays."""
        # Not to know what is in it, but whose it is.
        self.keys()
        super().flush()

    async def aflush(self) -> None:
        """End the session; see ``flush``."""
        await self.akeys()
        await super().aflush()

    def _of_here(self, stored: dict[str, Any]) -> dict[str, Any]:
        name = stored.pop(_ENVIRONMENT, "")
        if name and name == _here():
            return stored
        # Without its key nothing is saved over the session or deletes it, as a login with its cookie would.
        self._session_key = None
        return {}
