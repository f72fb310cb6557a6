"""Read the names of hosts, and look them up to addresses that may be contacted."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from ipaddress import IPv6Address

from submissions.source.errors import FetchFailed, HostNotAllowed
from vskill.public_hosts import Address, is_public, literal_address

_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")


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
