"""Read variables of the environment strictly: each is declared once, with its kind, its bounds and a sentence.

All faults are found before any is reported. An empty variable counts as one that is not set.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from vskill.variable_kinds import Fault, Kind


@dataclass(frozen=True)
class Variable:
    """The declaration of one variable.

    ``default`` is the value where it is not set, or a function of the values that were read before it; ``shown`` is how
    documents write such a default, and ``example`` is a value for .env.example, where that says more than the default.
    ``sentence`` says what the variable does, ``group`` under which heading. ``matters`` puts it into the short table of
    the README. The value of a ``secret`` is never shown.
    """

    name: str
    kind: Kind
    default: Any
    sentence: str
    group: str = ""
    shown: str = ""
    example: str = ""
    matters: bool = False
    secret: bool = False

    def default_text(self) -> str:
        """Return the default as a document writes it."""
        return self.shown or ("" if callable(self.default) else self.kind.write(self.default))


def grouped(group: str, *variables: Variable) -> list[Variable]:
    """Return ``variables`` as members of a group."""
    return [replace(variable, group=group) for variable in variables]


@dataclass(frozen=True)
class Setting:
    """A variable with the value that is in force; ``source`` is ``default``, ``.env`` or ``environment``."""

    variable: Variable
    value: Any
    source: str

    def shown(self) -> str:
        """Return the value as a person may see it."""
        if self.variable.secret:
            return "(not shown)" if self.value else "(none)"
        return self.variable.kind.write(self.value)


class InvalidSettings(ImproperlyConfigured):
    """Variables cannot be read; the text has one line for each fault."""


def read_variables(
    declared: Sequence[Variable], present: Mapping[str, str], sources: Mapping[str, str]
) -> dict[str, Setting]:
    """Return every declared variable with its value; raise ``InvalidSettings`` with all faults at once.

    ``present`` are the variables of the process, ``sources`` says where each of them comes from.
    """
    settings: dict[str, Setting] = {}
    faults: list[str] = []
    for variable in declared:
        text = present.get(variable.name, "").strip()
        source = sources.get(variable.name, "environment") if text else "default"
        try:
            value = variable.kind.read(text) if text else _default(variable, settings)
        except Fault as fault:
            comment = "; a comment has a line of its own" if " #" in text else ""
            faults.append(f"{variable.name}: {fault}{comment}")
            value = _default(variable, settings)
        settings[variable.name] = Setting(variable, value, source)
    if faults:
        raise InvalidSettings("\n".join(faults))
    return settings


def _default(variable: Variable, settings: Mapping[str, Setting]) -> Any:
    if not callable(variable.default):
        return variable.default
    return variable.default({name: setting.value for name, setting in settings.items()})


def unknown_names(declared: Iterable[Variable], present: Iterable[str], prefix: str) -> dict[str, str]:
    """Return the variables with ``prefix`` that nothing reads, each with the nearest known name, or an empty text."""
    known = [variable.name for variable in declared]
    unknown = sorted(name for name in present if name.startswith(prefix) and name not in known)
    return {name: next(iter(difflib.get_close_matches(name, known, 1)), "") for name in unknown}
