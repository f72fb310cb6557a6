"""Hold each source out in turn: only rules that earned their place on the other sources judge it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from submissions.evaluation.labels import Label
from submissions.evaluation.measure import TOGETHER, Measured
from submissions.evaluation.report import STOPPED, Section
from submissions.verification.verdict import Verdict
from vskill.hidden_characters import visible

LEAST_HELD: Final = 1
LEAST_PRECISION: Final = 0.5
EARNED: Final = "held out in turn"
WITH_UNTRIED: Final = "held out in turn, untried rules judge too"


@dataclass(frozen=True)
class Fold:
    """One source that is held out: which rules do not judge it, and which of those held nothing on any other."""

    source: str
    left_out: frozenset[str]
    untried: frozenset[str]


def folds(measured: Sequence[Measured], engine: str) -> list[Fold]:
    """Return a fold for each source, for the rules of ``engine``.

    A rule earns its place on the other sources: it holds ``LEAST_HELD`` malicious samples of them, and of all labelled
    samples that it holds there, at least ``LEAST_PRECISION`` are malicious.
    """
    held: defaultdict[str, Counter[tuple[str, Label]]] = defaultdict(Counter)
    for one in measured:
        for rule in one.holding:
            if rule.startswith(f"{engine}/"):
                held[rule][one.sample.source, one.sample.label] += 1
    return [_fold(source, held) for source in sorted({one.sample.source for one in measured})]


def _fold(source: str, held: dict[str, Counter[tuple[str, Label]]]) -> Fold:
    left_out, untried = set(), set()
    for rule, counted in held.items():
        right, wrong = (
            sum(number for (other, label), number in counted.items() if other != source and label is wanted)
            for wanted in (Label.MALICIOUS, Label.BENIGN)
        )
        if right < LEAST_HELD or right < LEAST_PRECISION * (right + wrong):
            left_out.add(rule)
            if right + wrong == 0:
                untried.add(rule)
    return Fold(source, frozenset(left_out), frozenset(untried))


def in_turn(measured: Sequence[Measured], engine: str) -> list[Section]:
    """Return the samples as they are judged when their source is held out: without and with rules that are untried.

    Other engines judge as always, because their rules were not made on these samples.
    """
    by_source = {fold.source: fold for fold in folds(measured, engine)}
    strict = tuple(_without(one, engine, by_source[one.sample.source].left_out) for one in measured)
    lenient = tuple(
        _without(one, engine, by_source[one.sample.source].left_out - by_source[one.sample.source].untried)
        for one in measured
    )
    return [Section(EARNED, strict, listed=False), Section(WITH_UNTRIED, lenient, listed=False)]


def _without(one: Measured, engine: str, left_out: Iterable[str]) -> Measured:
    """Return what would have come of a sample if some rules of ``engine`` did not exist."""
    gone = set(left_out)
    holding = tuple(rule for rule in one.holding if rule not in gone)
    said = tuple(rule for rule in one.said if rule not in gone)
    if (holding, said) == (one.holding, one.said):
        return one
    others = [name for name in one.verdicts if name not in {engine, TOGETHER}]
    verdicts = dict(one.verdicts)
    verdicts[engine] = _verdict(
        one.verdicts[engine],
        any(not rule.startswith(tuple(f"{name}/" for name in others)) for rule in holding),
        any(not rule.startswith(tuple(f"{name}/" for name in others)) for rule in said),
    )
    stopped = bool(holding) or any(one.verdicts[name] in STOPPED for name in others)
    verdicts[TOGETHER] = _verdict(one.verdicts[TOGETHER], stopped, bool(said))
    return replace(one, verdicts=verdicts, holding=holding, said=said)


def _verdict(before: Verdict, holds: bool, says: bool) -> Verdict:
    if before in {Verdict.FORMAT, Verdict.REFUSED, Verdict.INCONCLUSIVE} or (before in STOPPED and holds):
        return before
    return Verdict.NOTES if says else Verdict.CLEAR


def fold_lines(turns: Iterable[Fold]) -> Iterator[str]:
    """Yield for each source which rules did not judge it; those in brackets held nothing on any other source."""
    for fold in turns:
        names = sorted(fold.left_out)
        told = ", ".join(f"({name})" if name in fold.untried else name for name in names)
        yield f"{visible(fold.source)} is judged {f'without {visible(told)}' if told else 'by all rules'}."
