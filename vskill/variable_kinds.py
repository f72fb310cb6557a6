"""What a variable of the environment may hold: the kinds of values, how they are read strictly and how written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|)", re.ASCII)
_UNITS: Final = {"ms": 0.001, "": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_HOST: Final = re.compile(r"\*|\[[0-9a-fA-F:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?", re.ASCII)
_SWITCH: Final = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}
ENGINES: Final = {
    "sqlite": "django.db.backends.sqlite3",
    "postgres": "django.db.backends.postgresql",
    "postgresql": "django.db.backends.postgresql",
    "psql": "django.db.backends.postgresql",
    "pgsql": "django.db.backends.postgresql",
}


class Fault(ValueError):
    """A variable has a value that its kind does not allow; the text says which would be."""


@dataclass(frozen=True)
class Kind:
    """What a variable holds: how its text is read (raising ``Fault``), and how a value is written."""

    name: str
    read: Callable[[str], Any]
    write: Callable[[Any], str] = str


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


def _bounds(minimum: float | None, above: float | None, maximum: float | None) -> str:
    if minimum is not None and maximum is not None:
        return f"between {minimum:g} and {maximum:g}"
    parts = [
        "" if minimum is None else f"at least {minimum:g}",
        "" if above is None else f"above {above:g}",
        "" if maximum is None else f"at most {maximum:g}",
    ]
    return " and ".join(part for part in parts if part)


def _within(number: float, text: str, minimum: float | None, above: float | None, maximum: float | None) -> None:
    too_small = (minimum is not None and number < minimum) or (above is not None and number <= above)
    if too_small or (maximum is not None and number > maximum):
        raise Fault(f"{_quoted(text)} is not {_bounds(minimum, above, maximum)}")


TEXT: Final = Kind("text", str)


def integer(*, minimum: int | None = None, maximum: int | None = None) -> Kind:
    """Return the kind of whole numbers from ``minimum`` to ``maximum``."""

    def read(text: str) -> int:
        if not re.fullmatch(r"-?\d{1,18}", text, re.ASCII):
            raise Fault(f"{_quoted(text)} is not a whole number")
        _within(int(text), text, minimum, None, maximum)
        return int(text)

    return Kind("whole number", read)


def _seconds(text: str) -> float:
    found = _DURATION.fullmatch(text)
    if found is None:
        raise Fault(f"{_quoted(text)} is not a number of seconds; 90, 90s or 2m")
    return float(found[1]) * _UNITS[found[2]]


def _as_duration(seconds: float) -> str:
    return f"{seconds:g}"


def duration(*, minimum: float | None = None, above: float | None = None) -> Kind:
    """Return the kind of times in seconds, written ``90``, ``90s``, ``2m``, ``1h``, ``1d`` or ``500ms``."""

    def read(text: str) -> float:
        seconds = _seconds(text)
        _within(seconds, text, minimum, above, None)
        return seconds

    return Kind("time", read, _as_duration)


def durations(*, minimum: float) -> Kind:
    """Return the kind of lists of at least one time, separated by commas."""

    def read(text: str) -> list[float]:
        found = [_seconds(part.strip()) for part in text.split(",")]
        for part, seconds in zip(text.split(","), found, strict=True):
            _within(seconds, part.strip(), minimum, None, None)
        return found

    return Kind("times", read, lambda value: ",".join(map(_as_duration, value)))


def _read_switch(text: str) -> bool:
    try:
        return _SWITCH[text.lower()]
    except KeyError:
        raise Fault(f"{_quoted(text)} is neither on nor off; 1 or 0") from None


SWITCH: Final = Kind("switch", _read_switch, lambda value: "1" if value else "0")


def choice(*names: str) -> Kind:
    """Return the kind of texts that are one of ``names``, in any case."""

    def read(text: str) -> str:
        if text.upper() not in names:
            raise Fault(f"{_quoted(text)} is none of {', '.join(names)}")
        return text.upper()

    return Kind("one of several", read)


def _read_hosts(text: str) -> list[str]:
    hosts = [part.strip() for part in text.split(",") if part.strip()]
    for host in hosts:
        if _HOST.fullmatch(host):
            continue
        bare = urlsplit(host if "://" in host else f"//{host}").hostname or "skills.example.org"
        raise Fault(f"{_quoted(host)} is not a host name; write it without scheme, port and path: {bare}")
    return hosts


HOSTS: Final = Kind("host names", _read_hosts, ",".join)


def _read_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise Fault(f"{_quoted(text)} is not an address; https://skills.example.org")
    return text.rstrip("/")


URL: Final = Kind("address", _read_url)


def path_from(base: Path) -> Kind:
    """Return the kind of paths; relative ones count from ``base``."""
    return Kind("path", lambda text: (base / Path(text).expanduser()).resolve())


def paths_from(base: Path) -> Kind:
    """Return the kind of lists of paths, separated by commas; relative ones count from ``base``."""

    def read(text: str) -> list[str]:
        return [str((base / Path(part.strip()).expanduser()).resolve()) for part in text.split(",") if part.strip()]

    return Kind("paths", read, ",".join)


def _read_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise Fault(f"is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise Fault(f"{_quoted(text)} is not a JSON object, that is name and value pairs in braces")
    return value


def json_object(*, of_objects: bool = False, not_empty: bool = False) -> Kind:
    """Return the kind of JSON objects; ``of_objects`` wants objects as their values, ``not_empty`` at least one."""

    def read(text: str) -> dict[str, Any]:
        value = _read_object(text)
        if not_empty and not value:
            raise Fault("{} names nothing; leave the variable out for the default")
        for name, part in value.items():
            if of_objects and not isinstance(part, dict):
                raise Fault(f"the value of {name!r} is not a JSON object")
        return value

    return Kind("JSON object", read, json.dumps)


def _as_address(database: Mapping[str, Any]) -> str:
    if database["ENGINE"] == ENGINES["sqlite"]:
        return f"sqlite:///{database['NAME']}"
    port = f":{database['PORT']}" if database["PORT"] else ""
    return f"postgres://{database['USER']}@{database['HOST']}{port}/{database['NAME']}"


def database_from(base: Path) -> Kind:
    """Return the kind of database addresses, read as Django's options; a relative SQLite file counts from ``base``."""

    def read(text: str) -> dict[str, Any]:
        scheme = text.partition(":")[0]
        if "://" not in text or scheme not in ENGINES:
            # Without the text, which may hold a password.
            raise Fault("it is no database address; sqlite:///path or postgres://user:password@host:5432/name")
        try:
            found: dict[str, Any] = {**environ.Env.db_url_config(text), "ENGINE": ENGINES[scheme]}
        except (ImproperlyConfigured, ValueError) as error:
            raise Fault(f"it cannot be read as a database address ({type(error).__name__})") from None
        if scheme == "sqlite":
            name = str(found["NAME"] or "")
            if not name or name == ":memory:":
                raise Fault("it names no file; processes cannot share a database in memory: sqlite:///path")
            found["NAME"] = str((base / name).resolve())
        elif not found["NAME"] or not found["HOST"]:
            raise Fault("it names no host or no database; postgres://user:password@host:5432/name")
        return found

    return Kind("database address", read, _as_address)


def databases_from(base: Path) -> Kind:
    """Return the kind of JSON objects that name a database address for each alias."""
    database = database_from(base)

    def read(text: str) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for alias, address in _read_object(text).items():
            try:
                found[alias] = database.read(str(address))
            except Fault as fault:
                raise Fault(f"the address of {alias!r}: {fault}") from None
        return found

    return Kind("database addresses", read, lambda value: ", ".join(sorted(value)))
