"""The proxy through which everything is fetched, where the network of the server lets nothing out but by one."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from submissions.source.ssh_tunnel import VARIABLE
from vskill.proxied_services import with_login


@dataclass(frozen=True)
class Proxy:
    """The ``url`` of a proxy, and the ``login`` for it, ``user:password`` or ''; the login is in no ``repr``."""

    url: str
    login: str = field(default="", repr=False)

    def for_git(self) -> str:
        """Return the value of git's ``http.proxy``, which holds the login."""
        return with_login(self.url, self.login)

    def for_child(self) -> dict[str, Any]:
        """Return what ``PinnedClient`` takes, for a job that is written into the input of a child."""
        return {"url": self.url, "login": self.login}

    def for_ssh(self, host: str, port: int, ca_file: Path | None) -> dict[str, str]:
        """Return the variable by which ``ssh_tunnel`` reaches the ``port`` of a host; it holds the login.

        ``ca_file`` is a PEM file of authorities that may have signed the certificate of a proxy that speaks https.
        """
        to = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        job = {"proxy": self.url, "login": self.login, "to": to, "ca_file": str(ca_file) if ca_file else ""}
        return {VARIABLE: json.dumps(job)}

    def scrub(self, text: bytes) -> bytes:
        """Return ``text`` without the login, which git may repeat where it cannot reach the proxy."""
        password = self.login.partition(":")[2]
        for one in (quote(password, safe=""), password):
            text = text.replace(one.encode(), b"(secret)") if password else text
        return text
