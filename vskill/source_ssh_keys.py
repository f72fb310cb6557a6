"""The keys with which an environment reads repositories over ssh, as plain values from the settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from django.core.exceptions import ImproperlyConfigured

_PLACE: Final = re.compile(r"(?!-)[a-z0-9._-]+(/[^\s/@?#:]+)*")
# ssh gives a meaning to % and ~ in the names of files, and divides them at spaces.
_FILE: Final = re.compile(r"/[A-Za-z0-9._/+@=-]+")
_USER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_PORTS: Final = range(1, 65536)


@dataclass(frozen=True)
class SourceSshKey:
    """The key that opens one place, and the host keys that are accepted there.

    ``place`` is ``host``, ``host/owner`` or ``host/owner/repository``. Both files have absolute paths; ``user`` and
    ``port`` are those of the ssh server.
    """

    place: str
    key_file: str
    known_hosts_file: str
    user: str = "git"
    port: int = 22


def read_ssh_keys(name: str, value: Any) -> tuple[SourceSshKey, ...]:
    """Return the keys that ``source_ssh_keys`` of the environment ``name`` describes.

    Raises ``ImproperlyConfigured``, whose text repeats no value: somebody may have written a key there.
    """
    if not isinstance(value, Mapping):
        raise _fault(name, "maps a host, or host/owner, to an object with 'key_file' and 'known_hosts_file'")
    return tuple(_key(name, str(place), options) for place, options in value.items())


def _key(name: str, place: str, options: Any) -> SourceSshKey:
    host, slash, path = place.partition("/")
    canonical = f"{host.lower()}{slash}{path}".rstrip("/")
    if not _PLACE.fullmatch(canonical):
        raise _fault(name, "has a key that is no host or host/owner (without ssh://, user and port)")
    known = {one.name for one in fields(SourceSshKey)} - {"place"}
    if not isinstance(options, Mapping) or set(options) - known:
        raise _fault(name, f"gives {place!r} something else than an object of {', '.join(sorted(known))}")
    for option in ("key_file", "known_hosts_file"):
        if not _FILE.fullmatch(str(options.get(option, ""))):
            raise _fault(name, f"gives {place!r} no {option!r} with an absolute path of letters, digits and ._/+@=-")
    user, port = options.get("user", "git"), options.get("port", 22)
    if not isinstance(user, str) or not _USER.fullmatch(user):
        raise _fault(name, f"gives {place!r} a 'user' that is none")
    if not isinstance(port, int) or isinstance(port, bool) or port not in _PORTS:
        raise _fault(name, f"gives {place!r} a 'port' that is no number from 1 to 65535")
    return SourceSshKey(canonical, options["key_file"], options["known_hosts_file"], user, port)


def _fault(name: str, what: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"VSKILL_ENVIRONMENTS: 'source_ssh_keys' of {name!r} {what}.")
