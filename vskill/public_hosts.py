"""Tell hosts of the public internet from others, by names and address literals alone."""

from __future__ import annotations

import ipaddress
import socket
from ipaddress import IPv4Address, IPv6Address

Address = IPv4Address | IPv6Address

_PRIVATE_NAMES = ("localhost", "local", "localdomain", "internal", "intranet", "lan", "home", "corp", "private", "arpa")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# Python calls some of these global: the IETF's own addresses, and the relays of 6to4 (deprecated by RFC 7526).
_NOT_PUBLIC = (ipaddress.IPv4Network("192.0.0.0/24"), ipaddress.IPv4Network("192.88.99.0/24"))
_IPV4_COMPATIBLE = ipaddress.ip_network("::/96")


def literal_address(host: str) -> Address | None:
    """Return the address that ``host`` spells, or None for a name.

    Accepts every notation of the C library: ``2130706433``, ``0x7f.1``, ``0177.0.0.1`` and ``127.1`` are 127.0.0.1.
    """
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(host))
    except (OSError, ValueError):
        return None


def is_public(address: Address) -> bool:
    """Tell whether an address, and any IPv4 address embedded in it, is on the public internet."""
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return False
        embedded: list[IPv4Address] = [a for a in (address.ipv4_mapped, address.sixtofour) if a is not None]
        if address.teredo is not None:
            embedded.extend(address.teredo)
        if address in _IPV4_COMPATIBLE:
            return False
        if address in _NAT64:
            return is_public(IPv4Address(int(address) & 0xFFFFFFFF))
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        if embedded and not all(is_public(a) for a in embedded):
            return False
        if address.is_site_local:
            return False
    elif any(address in network for network in _NOT_PUBLIC):
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def refuse_private_name(host: str) -> str | None:
    """Return why ``host`` cannot be public, judging by its spelling alone, or None when it can."""
    address = literal_address(host)
    if address is not None:
        return None if is_public(address) else f"{host} is a private, loopback or reserved address"
    labels = host.split(".")
    if labels[-1] in _PRIVATE_NAMES or len(labels) == 1:
        return f"{host} is a name of a private network"
    if labels[-1].isdigit():
        return f"{host} is neither a host name nor an address"
    return None
