"""Find out the address and the scheme of a client behind proxies, and believe nobody but the proxies that are trusted.

It stands before everything else, so that all code sees the client's address as the address of the request. uvicorn can
do it too, but from a list of its own, without the header ``Forwarded`` and not over a unix socket; it is started with
``--no-proxy-headers``.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from vskill.web.request_limits import Application, Receive, Scope, Send

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
UNIX: Final = "unix"
FORWARDED: Final = "FORWARDED"
_SCHEMES: Final = ("http", "https")
# Beyond this many proxies nobody is asked any more: a header may be long.
_MOST_PROXIES: Final = 20
# RFC 7239: pairs of name and value, where a value may be quoted.
_PAIR: Final = re.compile(r'\s*([A-Za-z]+)=("(?:[^"\\]|\\.)*"|[^\s;,"]*)\s*(;|,|$)')


@dataclass(frozen=True)
class Seen:
    """Where a request came from: the client's address, empty where there is none, and the scheme it used."""

    address: str
    scheme: str


@dataclass(frozen=True)
class _Hop:
    """What one proxy says of the one before it."""

    address: str
    scheme: str = ""


class Proxies:
    """The proxies that are trusted, and the header in which they write.

    ``trusted`` are addresses and networks, and ``unix`` for whoever connects over a unix socket. ``header`` is
    ``X-FORWARDED-FOR``, with ``X-Forwarded-Proto`` beside it, or ``FORWARDED``. Only that one is read: a proxy that
    writes one passes on what a client wrote into the other.
    """

    def __init__(self, trusted: Sequence[str], header: str) -> None:
        """Read the networks."""
        self._unix = UNIX in trusted
        self._networks = [ipaddress.ip_network(one) for one in trusted if one != UNIX]
        self._forwarded = header == FORWARDED

    def origin(self, peer: str, scheme: str, headers: Callable[[str], Iterable[str]]) -> Seen:
        """Return where a request came from, from the right of the header to the first address that is not trusted.

        ``peer`` is the address of the connection, empty for a unix socket, ``scheme`` its scheme; ``headers`` returns
        the values of a header by its name in lower case.
        """
        if not (self._trusts(peer) if peer else self._unix):
            return Seen(peer, scheme)
        hops = _forwarded(headers("forwarded")) if self._forwarded else _x_forwarded(headers)
        for number, hop in enumerate(reversed(hops)):
            address = _parsed(hop.address)
            if hop.scheme in _SCHEMES:
                scheme = hop.scheme
            if address is None:
                # "unknown", a made-up name or nonsense: nothing further left can be believed.
                break
            peer = str(address)
            if number >= _MOST_PROXIES or not self._trusts(peer):
                break
        return Seen(peer, scheme)

    def _trusts(self, address: str) -> bool:
        parsed = _parsed(address)
        return parsed is not None and any(parsed in network for network in self._networks)


def _parsed(text: str) -> Address | None:
    """Return an address, with or without brackets and port, or ``None`` for anything else."""
    bare = text.strip()
    if bare.startswith("["):
        bare = bare[1:].partition("]")[0]
    elif bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        address = ipaddress.ip_address(bare.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _x_forwarded(headers: Callable[[str], Iterable[str]]) -> list[_Hop]:
    addresses = [part for line in headers("x-forwarded-for") for part in line.split(",") if part.strip()]
    scheme = "".join(list(headers("x-forwarded-proto"))[-1:]).strip().lower()
    # The last proxy says which scheme the client used; there is one value for the whole way.
    hops = [_Hop(address) for address in addresses[:-1]]
    return [*hops, _Hop(addresses[-1] if addresses else "", scheme)]


def _forwarded(lines: Iterable[str]) -> list[_Hop]:
    hops = []
    for pairs in _elements(",".join(lines)):
        hops.append(_Hop(pairs.get("for", ""), pairs.get("proto", "").lower()))
    return hops


def _elements(text: str) -> Iterator[dict[str, str]]:
    """Yield the pairs of each element; an element that cannot be read has none, and so names no address."""
    place, pairs = 0, dict[str, str]()
    while place < len(text):
        found = _PAIR.match(text, place)
        if found is None:
            yield {}
            following = text.find(",", place)
            place, pairs = (following + 1 if following >= 0 else len(text)), {}
            continue
        name, value, end = found.groups()
        pairs[name.lower()] = re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') else value
        place = found.end()
        if end != ";" or place >= len(text):
            yield pairs
            pairs = {}


class TrustProxies:
    """ASGI middleware that puts the client's address and scheme in the place of those of the last proxy."""

    def __init__(self, application: Application, proxies: Proxies) -> None:
        """Pass requests on to ``application``."""
        self._application = application
        self._proxies = proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, with the address and the scheme of its client."""
        if scope["type"] == "http":
            peer, port = scope.get("client") or ("", 0)
            lines = scope["headers"]

            def values(name: str) -> list[str]:
                wanted = name.encode()
                return [value.decode("latin-1") for key, value in lines if key.lower() == wanted]

            seen = self._proxies.origin(peer, scope.get("scheme", "http"), values)
            if seen.address != peer:
                port = 0
            scope["client"] = (seen.address, port) if seen.address else None
            scope["scheme"] = seen.scheme
        await self._application(scope, receive, send)


def trust_proxies_of_wsgi(application: Callable[..., Any], proxies: Proxies) -> Callable[..., Any]:
    """Return a WSGI application that does the same as ``TrustProxies``."""

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        def values(name: str) -> list[str]:
            value = environ.get(f"HTTP_{name.upper().replace('-', '_')}")
            return [str(value)] if value else []

        seen = proxies.origin(str(environ.get("REMOTE_ADDR") or ""), str(environ["wsgi.url_scheme"]), values)
        return application({**environ, "REMOTE_ADDR": seen.address, "wsgi.url_scheme": seen.scheme}, start_response)

    return answer
