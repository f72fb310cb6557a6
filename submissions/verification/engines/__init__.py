"""The registry of engines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from submissions.verification.engines.adviser import Adviser
from submissions.verification.engines.base import Engine
from submissions.verification.engines.cisco import Cisco
from submissions.verification.engines.own import OwnEngine
from submissions.verification.engines.skilltotal import SkillTotal
from submissions.verification.errors import UnknownEngine

ENGINES: Final[dict[str, type[Engine]]] = {one.name: one for one in (OwnEngine, SkillTotal, Cisco, Adviser)}
"""Every engine by its name; ``cisco`` is installed apart, and ``adviser`` needs an endpoint."""


def get_engines(names: Iterable[str]) -> list[Engine]:
    """Return one engine per name, in the given order and without repetitions; raises UnknownEngine."""
    engines: list[Engine] = []
    for name in dict.fromkeys(names):
        if name not in ENGINES:
            raise UnknownEngine(
                f"There is no verification engine called {name!r}. Known ones: {', '.join(sorted(ENGINES))}."
            )
        engines.append(ENGINES[name]())
    return engines
