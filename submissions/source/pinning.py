"""Check the host of an https address, and pin the transfer to the addresses that were checked."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from submissions.source.errors import FetchFailed, HostNotAllowed
from submissions.source.hosts import normalise_host, resolve_public
from submissions.source.ssh import SSH
from submissions.source.urls import SourcePolicy
from vskill.public_hosts import refuse_private_name

logger = logging.getLogger(__name__)

_PORTS: Final = {"https": 443, SSH: 22}
# Networks that let nothing out but through a proxy often have no resolver that answers.
_LOOK_UP_SECONDS: Final = 3.0


@dataclass(frozen=True)
class Pinned:
    """A host, its port, and the only addresses that it may be contacted at; none where it is reached by the proxy."""

    host: str
    port: int
    addresses: tuple[str, ...]


async def pin(
    url: str, policy: SourcePolicy, *, seconds: float, may_be_private: bool = True, scheme: str = "https"
) -> Pinned:
    """Resolve the host of a ``url`` of that ``scheme`` and return its addresses, all of them allowed by ``policy``.

    Without ``may_be_private`` they have to be public, whatever the policy allows. The resolver may take ``seconds``.
    Raises HostNotAllowed, and FetchFailed where the name does not resolve. Where the host is reached by a proxy, that
    resolves the name again; it is looked up here only to refuse what is known to be private, and need not be found.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or _PORTS[scheme]
    except ValueError:
        raise _not_plain() from None
    if parts.scheme != scheme or normalise_host(f"[{host}]" if ":" in host else host) != host:
        raise _not_plain()
    allowed = may_be_private and may_lead_to_private(host, port, policy)
    if policy.proxy_for(host, port) is None:
        return Pinned(host, port, await resolve_public(host, port, private_allowed=allowed, seconds=seconds))
    if not allowed and refuse_private_name(host) is not None:
        raise HostNotAllowed(f"The host {host} is not on the public internet, so nothing was fetched.")
    try:
        await resolve_public(host, port, private_allowed=allowed, seconds=min(seconds, _LOOK_UP_SECONDS))
    except FetchFailed:
        logger.debug("%s is not found by name here; the proxy decides", host)
    return Pinned(host, port, ())


def may_lead_to_private(host: str, port: int | None, policy: SourcePolicy) -> bool:
    """Tell whether ``policy`` lets a host have private addresses, as a listed one or a mirror; ``port`` None is 443."""
    trusted = {urlsplit(target).hostname for _, target in policy.rewrites}
    return policy.allows_private(host, port) or host in trusted


def _not_plain() -> HostNotAllowed:
    return HostNotAllowed("Repositories are fetched over https only, from a plain host name.")
