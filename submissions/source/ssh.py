"""Read repositories over ssh: with a key of the operator, from a host whose own key is pinned, and in no other way."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from submissions.source.logins import covers

SSH: Final = "ssh"
SSH_PORT: Final = 22
# Isolated and without site packages: neither the folder that ssh runs in nor a variable decides what it imports.
_TUNNEL: Final = (sys.executable, "-I", "-S", str(Path(__file__).with_name("ssh_tunnel.py")))
# Nothing of anybody's configuration, no agent, no other way to sign in, no other host key and no other place.
_ALWAYS: Final = (
    *("-F", "none", "-T", "-a", "-x"),
    *(
        part
        for option in (
            "BatchMode=yes",
            "StrictHostKeyChecking=yes",
            "GlobalKnownHostsFile=/dev/null",
            "UpdateHostKeys=no",
            "VerifyHostKeyDNS=no",
            "CheckHostIP=no",
            "CanonicalizeHostname=no",
            "IdentitiesOnly=yes",
            "IdentityAgent=none",
            "AddKeysToAgent=no",
            "PreferredAuthentications=publickey",
            "ClearAllForwardings=yes",
            "ControlMaster=no",
            "ControlPath=none",
            "PermitLocalCommand=no",
            "ConnectTimeout=10",
            "ServerAliveInterval=10",
            "ServerAliveCountMax=2",
            "LogLevel=ERROR",
        )
        for part in ("-o", option)
    ),
)


@dataclass(frozen=True)
class SshKey:
    """The file of a key, the file with the keys of its host, and the ``user`` and ``port`` of the ssh server.

    ``place`` is a host, or an owner or a repository on it. The key itself is read by ssh alone.
    """

    place: str
    key_file: str
    known_hosts_file: str
    user: str = "git"
    port: int = SSH_PORT

    def address(self, url: str) -> str:
        """Return the ssh address of the repository whose https address is ``url``."""
        parts = urlsplit(url)
        port = "" if self.port == SSH_PORT else f":{self.port}"
        return f"ssh://{self.user}@{parts.hostname}{port}{parts.path}"

    def command(self, host: str, address: str | None) -> str:
        """Return the command that git runs in the place of ssh.

        It connects to ``address``, which was checked, or where that is ``None`` through ``ssh_tunnel``. There it
        expects a key that is pinned for ``host``.
        """
        named = host if self.port == SSH_PORT else f"[{host}]:{self.port}"
        options = {
            "UserKnownHostsFile": self.known_hosts_file,
            "IdentityFile": self.key_file,
            "HostName": (host if address is None else address).replace("%", "%%"),
            "HostKeyAlias": named,
            # ssh gives this one to a shell; it has no word of an address.
            "ProxyCommand": "none" if address is not None else shlex.join(_TUNNEL).replace("%", "%%"),
        }
        pairs = (part for name, value in options.items() for part in ("-o", f"{name}={value}"))
        return shlex.join([SSH, *_ALWAYS, *pairs])


def key_for(keys: Iterable[SshKey], url: str) -> SshKey | None:
    """Return the key for the repository at ``url`` (https or ssh) whose place is the longest, or ``None``."""
    fitting = [one for one in keys if covers(one.place, over_https(url))]
    return max(fitting, key=lambda one: one.place.count("/"), default=None)


def over_https(url: str) -> str:
    """Return the https address of the repository at ``url``, which may be one of ssh."""
    parts = urlsplit(url)
    return f"https://{parts.hostname}{parts.path}" if parts.scheme == SSH else url
