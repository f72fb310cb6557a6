"""A source that is held out is judged by rules that earned their place on the others."""

from __future__ import annotations

from collections.abc import Sequence

from submissions.evaluation.held_out import EARNED, WITH_UNTRIED, Fold, fold_lines, folds, in_turn
from submissions.evaluation.labels import Label, Sample
from submissions.evaluation.measure import TOGETHER, Measured
from submissions.evaluation.statistics import Share
from submissions.verification.verdict import Verdict


def measured(
    source: str, label: Label, holding: Sequence[str], said: Sequence[str] = (), other: Verdict = Verdict.CLEAR
) -> Measured:
    own = Verdict.HELD if any(rule.startswith("own/") for rule in holding) else Verdict.CLEAR
    together = Verdict.HELD if holding else Verdict.NOTES if said else Verdict.CLEAR
    verdicts = {"own": own, "other": other, TOGETHER: together}
    sample = Sample(f"{source}/{len(holding)}", label, source, "", "")
    return Measured(sample, verdicts, holding=tuple(holding), said=(*holding, *said))


GOOD = measured("a", Label.MALICIOUS, ["own/good"])
SAMPLES = (
    GOOD,
    measured("b", Label.MALICIOUS, ["own/good"]),
    measured("b", Label.MALICIOUS, ["own/lonely"], ["own/note"]),
    measured("c", Label.BENIGN, ["own/coarse"]),
    measured("c", Label.BENIGN, ["own/coarse"]),
    measured("a", Label.MALICIOUS, ["own/coarse"]),
    measured("b", Label.MALICIOUS, ["own/coarse", "other/x"], other=Verdict.HELD),
)


def of(name: str, source: str, number: int) -> Measured:
    [section] = [one for one in in_turn(SAMPLES, "own") if one.name == name]
    return [one for one in section.measured if one.sample.source == source][number]


def test_a_rule_that_held_malicious_samples_of_another_source_judges() -> None:
    assert of(EARNED, "a", 0) == GOOD
    assert of(EARNED, "b", 0).verdicts[TOGETHER] is Verdict.HELD


def test_a_rule_without_evidence_elsewhere_says_nothing() -> None:
    alone = of(EARNED, "b", 1)
    assert (alone.verdicts["own"], alone.verdicts[TOGETHER]) == (Verdict.NOTES, Verdict.NOTES)
    assert alone.said == ("own/note",)
    assert of(WITH_UNTRIED, "b", 1).verdicts[TOGETHER] is Verdict.HELD


def test_a_rule_that_is_mostly_wrong_elsewhere_says_nothing() -> None:
    assert of(EARNED, "a", 1).verdicts[TOGETHER] is Verdict.CLEAR
    assert of(WITH_UNTRIED, "a", 1).verdicts[TOGETHER] is Verdict.CLEAR
    assert of(EARNED, "c", 0).verdicts[TOGETHER] is Verdict.HELD


def test_what_another_engine_holds_stays_held() -> None:
    both = of(EARNED, "b", 2)
    assert (both.verdicts["own"], both.verdicts[TOGETHER]) == (Verdict.CLEAR, Verdict.HELD)
    assert both.holding == ("other/x",)


def test_nothing_of_a_source_that_is_held_out_is_listed() -> None:
    assert [(one.listed, len(one.measured)) for one in in_turn(SAMPLES, "own")] == [(False, 7), (False, 7)]
    first = in_turn(SAMPLES, "own")[0]
    assert first.tally(TOGETHER, Label.MALICIOUS).stopped == Share(3, 5)


def test_the_rules_that_do_not_judge_are_named() -> None:
    turns = folds(SAMPLES, "own")
    assert turns[0] == Fold("a", frozenset({"own/coarse"}), frozenset())
    assert turns[1] == Fold("b", frozenset({"own/coarse", "own/lonely"}), frozenset({"own/lonely"}))
    assert list(fold_lines(turns)) == [
        "a is judged without own/coarse.",
        "b is judged without own/coarse, (own/lonely).",
        "c is judged by all rules.",
    ]
