"""Which services that an operator configured are asked through the proxy of an environment, and by which address."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import quote, urlsplit

from vskill.public_hosts import refuse_private_name

_PORTS = {"https": 443, "http": 80}


def is_asked_directly(url: str, unproxied: Collection[str]) -> bool:
    """Tell whether the service at ``url`` needs no proxy: a local one, and one whose host is ``unproxied``.

    Local are private addresses, names of private networks and names without a dot, as they are spelled; nothing is
    looked up. ``unproxied`` has hosts, or ``host:port``.
    """
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
    return refuse_private_name(host) is not None or host in unproxied or f"{host}:{port}" in unproxied


def with_login(url: str, login: str) -> str:
    """Return the address of a proxy with ``login`` (``user:password`` or '') in it, as git and requests take it."""
    if not login:
        return url
    scheme, _, rest = url.partition("://")
    user, _, password = login.partition(":")
    return f"{scheme}://{quote(user, safe='')}:{quote(password, safe='')}@{rest}"
