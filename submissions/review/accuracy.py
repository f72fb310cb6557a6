"""How often reviewers overturn what a rule holds: counted from their decisions, a row for each submission and rule."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import Count

from submissions.evaluation.statistics import Share
from submissions.models import RuleSign
from submissions.store.signs import SignOutcome
from vskill.environments import WorkerEnv


@dataclass(frozen=True)
class RuleAccuracy:
    """One rule of one engine: how many of those it held were decided, how many of them overturned, how many wait."""

    engine: str
    rule_id: str
    overturned: int
    decided: int
    undecided: int

    @property
    def share(self) -> Share:
        """Return the share that was overturned, with its interval."""
        return Share(self.overturned, self.decided)

    @property
    def words(self) -> str:
        """Return the share in words, as it stands beside a finding."""
        interval = self.share.interval
        if interval is None:
            return "No decision yet about what this rule holds."
        low, high = (round(100 * one) for one in interval)
        return f"{self.overturned:,} of {self.decided:,} overturned ({low} to {high} %)"


def accuracies(env: WorkerEnv, rules: Sequence[str] | None = None) -> list[RuleAccuracy]:
    """Return the accuracy of every rule that ever held something, or of ``rules``, by engine and name."""
    rows = RuleSign.objects.using(env.database).filter(namespace=env.name)
    if rules is not None:
        rows = rows.filter(rule_id__in=rules)
    counts: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    grouped = rows.order_by().values("engine", "rule_id", "outcome").annotate(number=Count("id"))
    for row in grouped:
        counts[row["engine"], row["rule_id"]][row["outcome"]] = row["number"]
    return [
        RuleAccuracy(
            engine,
            rule,
            overturned=by.get(SignOutcome.OVERTURNED, 0),
            decided=by.get(SignOutcome.OVERTURNED, 0) + by.get(SignOutcome.UPHELD, 0),
            undecided=by.get(SignOutcome.OPEN, 0),
        )
        for (engine, rule), by in sorted(counts.items())
    ]


_LEFT: Final = 300
_BAR: Final = 300
_ROW: Final = 24
MOST_BARS: Final = 40


def bars(shown: Sequence[RuleAccuracy]) -> dict[str, object]:
    """Return what the template of the chart draws: a bar for each rule with decisions, most decisions first."""
    ordered = sorted((one for one in shown if one.decided), key=lambda one: (-one.decided, one.engine, one.rule_id))
    rows = []
    for number, one in enumerate(ordered[:MOST_BARS]):
        low, high = one.share.interval or (0.0, 1.0)
        top = number * _ROW
        rows.append(
            {
                "name": f"{one.engine} {one.rule_id}"[:44],
                "label": one.words,
                "text_y": top + 16,
                "bar_y": top + 5,
                "middle": top + 12,
                "width": round((one.share.rate or 0) * _BAR, 1),
                "low": round(_LEFT + low * _BAR, 1),
                "high": round(_LEFT + high * _BAR, 1),
            }
        )
    return {"rows": rows, "height": max(1, len(rows)) * _ROW, "width": 900, "left": _LEFT, "bar": _BAR}
