"""Whom a request is counted for."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import Final

from django.http import HttpRequest

# A connection over a unix socket whose proxy forwards no address; all of them share one count.
NO_ADDRESS: Final = "no address"
# What one customer of a provider gets at least: counting single addresses would count nobody.
_IPV6_PREFIX: Final = 64


def client_of(request: HttpRequest) -> str:
    """Return the client of a request: its address as ``vskill.web.trusted_proxies`` found it, IPv6 by its /64.

    This is the only place that decides it. Once there are tokens, one that is valid comes first.
    """
    return _network_of(str(request.META.get("REMOTE_ADDR") or ""))


@lru_cache(maxsize=4096)
def _network_of(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return NO_ADDRESS
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((parsed, _IPV6_PREFIX), strict=False))
    return str(parsed)
