"""Where a commit is fetched from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from submissions.source.logins import Login
from submissions.source.proxies import Proxy
from submissions.source.ssh import SSH, SSH_PORT
from submissions.source.urls import SourcePolicy


@dataclass(frozen=True)
class Origin:
    """Where a commit is fetched from: the address, its transport, the configuration for it, and the host ('': here).

    ``login`` is what the host gets to see, and ``proxy`` what git goes through. Both are written into no file, as
    the configuration is. ``ca_file`` is a PEM file of authorities for a proxy that ssh goes through.
    """

    url: str
    transport: str
    configuration: Sequence[tuple[str, str]]
    host: str
    login: Login | None = field(default=None, repr=False)
    proxy: Proxy | None = None
    ca_file: Path | None = None

    @classmethod
    def under(cls, policy: SourcePolicy, url: str, configuration: Sequence[tuple[str, str]], host: str) -> Origin:
        """Return the origin that ``url`` is, with what ``policy`` has it reached with."""
        parts = urlsplit(url)
        proxy = policy.proxy_for(parts.hostname or "", parts.port or (SSH_PORT if parts.scheme == SSH else 443))
        return cls(url, parts.scheme, configuration, host, policy.login_for(url), proxy, policy.ca_file)

    @property
    def signs_in_at(self) -> str:
        """Return the place that this is read with a login or a key for, '' where it is read as anybody reads it."""
        if self.login is not None:
            return self.login.place
        return self.host if self.transport == SSH else ""

    @property
    def upload_pack(self) -> str:
        """Return the option with the command that git starts on this machine, or has started by ssh on the host."""
        # --strict takes only the exact folder that was checked. Hosts allow the command over ssh by its exact words.
        return f"--upload-pack=git-upload-pack{' --strict' if self.transport == 'file' else ''}"

    def variables(self) -> dict[str, str]:
        """Return the variables of a git process that may talk to this origin.

        The header is in the environment of git, which only this user and root can read, and never in its arguments,
        which everybody can. git gets it for this host and port alone, and follows no redirect.
        """
        settings: list[tuple[str, str]] = []
        if self.login is not None and self.login.is_for(self.url):
            base = "/".join(self.url.split("/")[:3])
            settings.append((f"http.{base}/.extraHeader", f"Authorization: {self.login.header}"))
        if self.proxy is not None:
            settings += [("http.proxy", self.proxy.for_git()), ("http.proxyAuthMethod", "basic")]
        variables = {"GIT_ALLOW_PROTOCOL": self.transport or "none", "GIT_CONFIG_COUNT": str(len(settings))}
        for number, (key, value) in enumerate(settings):
            variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        if self.proxy is not None and self.transport == SSH:
            parts = urlsplit(self.url)
            # git hands it on to ssh, and ssh to the tunnel; ssh sends no variable to the host but that of git.
            variables |= self.proxy.for_ssh(parts.hostname or "", parts.port or SSH_PORT, self.ca_file)
        return variables

    def scrub(self, text: bytes) -> bytes:
        """Return what git or the host said, without a secret of ours."""
        for one in (self.login, self.proxy):
            text = one.scrub(text) if one is not None else text
        return text
