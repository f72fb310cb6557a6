"""What the counts that are kept say of one list: how long it is, and how many of its skills have each value of a facet.

They say how long a list is that two facets filter, and how many skills of a list that one filters have each value of
another; see ``counts``. Where the length alone is kept, the values of a longer list are those that there can be.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Final

from marketplace.skills.count_reads import KeptCounts, read_kept
from marketplace.skills.counts import (
    AGENT,
    CAPABILITY,
    LICENSE,
    PUBLISHER,
    TAG,
    TOTAL,
    VERDICT,
    counts_values,
    list_of,
    total_key,
)
from vskill.environments import WorkerEnv

FACET_VALUES: Final = 20
# The facets, those first of which a value leaves few skills, as a rule.
_NARROWEST: Final = (PUBLISHER, TAG, CAPABILITY, LICENSE, AGENT, VERDICT)


class KeptList:
    """The counts of the list that ``facets`` filter, one value of each, read by one statement at the first question."""

    def __init__(
        self, env: WorkerEnv, facets: Mapping[str, str], asked: Collection[str], *, is_kept: bool, alone: bool
    ) -> None:
        """Begin with nothing read.

        ``asked`` are the facets whose values are asked for. ``is_kept`` says that counts are kept of what is listed,
        and ``alone`` that nothing but ``facets`` filters it.
        """
        self._env = env
        self._facets = facets
        self._asked = asked
        self._is_kept = is_kept
        self._alone = is_kept and alone

    @cached_property
    def _read(self) -> KeptCounts:
        if not self._is_kept:
            return KeptCounts({}, {})
        keys = [("", name, value) for name, value in self._facets.items()] + [("", TOTAL, "")] * bool(self._facets)
        lists = []
        if self._alone:
            lists = [(list_of(self._others(name)), name) for name in self._asked if self._has_values(name)]
            # Where the list turns out to be long.
            uncounted = [name for name in self._asked if self._has_length(name) and not self._has_values(name)]
            lists += [(list_of(self._longer(name)), name) for name in uncounted]
            totals = [total_key(one) for one in (self._facets, *map(self._others, uncounted))]
            keys += [key for key in totals if key is not None]
        return read_kept(self._env, list(dict.fromkeys(keys)), list(dict.fromkeys(lists)), limit=FACET_VALUES)

    @property
    def every(self) -> int:
        """Return how many skills there are without any filter, 0 where that is not kept."""
        return self._read.counts.get(("", TOTAL, ""), 0)

    def count(self, name: str) -> int | None:
        """Return how many skills the chosen value of a facet alone leaves, ``None`` where no count of that is kept."""
        return self._read.counts.get(("", name, self._facets.get(name, "")))

    def total(self, *, without: str = "") -> int | None:
        """Return how long the list is, ``without`` one of the facets, ``None`` where that is not kept."""
        key = total_key(self._others(without)) if self._alone else None
        return self._read.counts[key] if key is not None else None

    def values(self, name: str) -> list[tuple[str, int]] | None:
        """Return the most frequent values that the other facets leave of one, ``None`` where they are not kept."""
        if not self._alone or not self._has_values(name):
            return None
        return self._read.highest[list_of(self._others(name)), name]

    def values_of_longer(self, name: str) -> list[str]:
        """Return the most frequent values in a longer list, where ``values`` are not kept but ``total`` is."""
        return [value for value, _count in self._read.highest[list_of(self._longer(name)), name]]

    def _others(self, name: str) -> dict[str, str]:
        return {other: value for other, value in self._facets.items() if other != name}

    def _has_values(self, name: str) -> bool:
        return counts_values(name, self._others(name))

    def _has_length(self, name: str) -> bool:
        return total_key(self._others(name)) is not None

    def _longer(self, name: str) -> dict[str, str]:
        others = self._others(name)
        narrowest = min(others, key=_NARROWEST.index)
        return {narrowest: others[narrowest]}
