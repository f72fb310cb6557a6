"""What variables about clients may hold: the proxies that are trusted, and how much a client may do in a while."""

from __future__ import annotations

import ipaddress
import re
from typing import Final

from vskill.variable_kinds import Fault, Kind

# As the library ``limits`` writes it, but of one form only.
_RATE: Final = re.compile(r"([1-9]\d{0,8})/(second|minute|hour|day)", re.ASCII)
_OFF: Final = "off"
_NOBODY: Final = "none"
_UNIX: Final = "unix"


def _read_rate(text: str) -> str:
    if text.lower() == _OFF:
        return ""
    if not _RATE.fullmatch(text):
        raise Fault(f"{text[:60]!r} is not a number in a second, minute, hour or day; 60/minute, or off")
    return text


RATE: Final = Kind("rate", _read_rate, lambda rate: rate or _OFF)


def _read_networks(text: str) -> list[str]:
    if text.lower() == _NOBODY:
        return []
    found = []
    for part in (part.strip() for part in text.split(",")):
        if part.lower() == _UNIX:
            found.append(_UNIX)
            continue
        try:
            found.append(str(ipaddress.ip_network(part)))
        except ValueError:
            nearest = _network_around(part)
            raise Fault(f"{part[:60]!r} is not an address or a network; {nearest}") from None
    return found


def _network_around(text: str) -> str:
    try:
        return f"write the network as {ipaddress.ip_network(text, strict=False)}"
    except ValueError:
        return "127.0.0.1, 10.0.0.0/8, ::1, unix or none"


NETWORKS: Final = Kind("networks", _read_networks, lambda networks: ",".join(networks) or _NOBODY)
