"""Decide which hosts may be contacted, from their names, address literals and resolved addresses."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from ipaddress import IPv4Address, IPv6Address

from submissions.source.errors import FetchFailed, HostNotAllowed

Address = IPv4Address | IPv6Address

_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_PRIVATE_NAMES = ("localhost", "local", "localdomain", "internal", "intranet", "lan", "home", "corp", "private", "arpa")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# Python calls some of these global: the IETF's own addresses, and the relays of 6to4 (deprecated by RFC 7526).
_NOT_PUBLIC = (ipaddress.IPv4Network("192.0.0.0/24"), ipaddress.IPv4Network("192.88.99.0/24"))
_IPV4_COMPATIBLE = ipaddress.ip_network("::/96")


def normalise_host(text: str) -> str | None:
    """Return a host name in lower-case ASCII without the root dot, or None for anything else.

    Internationalised names are returned in ``xn--`` form and full-width digits as plain ones. An IPv6 literal is
    returned without brackets, in its shortest form.
    """
    if text.startswith("[") and text.endswith("]"):
        try:
            return str(IPv6Address(text[1:-1]))
        except ValueError:
            return None
    try:
        host = text.encode("idna").decode("ascii").lower().removesuffix(".")
    except UnicodeError:
        return None
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in host.split(".")):
        return None
    return host


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


async def resolve_public(host: str, port: int, *, private_allowed: bool, seconds: float) -> tuple[str, ...]:
    """Resolve ``host`` and return its addresses, all of them checked, so that the transfer can be pinned to them.

    ``port`` is passed to the resolver, which may take ``seconds``. Raises HostNotAllowed when any address is private
    and ``private_allowed`` is false: a name that mixes public and private addresses is an attack on the check, not a
    mistake. Raises FetchFailed when the name does not resolve in time.
    """
    literal = literal_address(host)
    if literal is not None:
        addresses: list[Address] = [literal]
    else:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(seconds):
                answers = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        except TimeoutError:
            raise FetchFailed(f"Looking up the host {host} took too long. Try again later.") from None
        except (OSError, UnicodeError):
            raise FetchFailed(
                f"The host {host} was not found by name. Check the spelling; if it is right, try again later."
            ) from None
        addresses = [ipaddress.ip_address(answer[4][0]) for answer in answers]
    if not private_allowed and not all(is_public(address) for address in addresses):
        raise HostNotAllowed(
            f"The host {host} leads to an address that is not on the public internet, so nothing was fetched. "
            "Submit a repository that anyone can reach, or ask the operator to allow this host."
        )
    return tuple(dict.fromkeys(str(address) for address in addresses))
