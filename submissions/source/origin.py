"""Where a commit is fetched from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from submissions.source.logins import Login


@dataclass(frozen=True)
class Origin:
    """Where a commit is fetched from: the address, its transport, the configuration for it, and the host ('': here).

    ``login`` is what the host gets to see with it. It is written into no file: the configuration is.
    """

    url: str
    transport: str
    configuration: Sequence[tuple[str, str]]
    host: str
    login: Login | None = field(default=None, repr=False)

    def variables(self) -> dict[str, str]:
        """Return the variables of a git process that may talk to this origin.

        The header is in the environment of git, which only this user and root can read, and never in its arguments,
        which everybody can. git gets it for this host and port alone, and follows no redirect.
        """
        variables = {"GIT_ALLOW_PROTOCOL": self.transport or "none"}
        if self.login is not None and self.login.is_for(self.url):
            base = "/".join(self.url.split("/")[:3])
            variables |= {
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": f"http.{base}/.extraHeader",
                "GIT_CONFIG_VALUE_0": f"Authorization: {self.login.header}",
            }
        return variables
