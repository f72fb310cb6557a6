"""A report counts what a measure found, and nothing else."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Sequence

import pytest

from submissions.evaluation.chart import chart
from submissions.evaluation.labels import Label, Sample
from submissions.evaluation.measure import TOGETHER, Measured
from submissions.evaluation.report import Section, as_document, judges, rules_that_hold, sections
from submissions.evaluation.statistics import Share
from submissions.evaluation.tables import report_lines, wrong_lines
from submissions.verification.verdict import Verdict

ENGINES = ["one", "two"]


def measured(
    label: Label,
    together: Verdict,
    *,
    alone: tuple[Verdict, Verdict] | None = None,
    source: str = "here",
    kind: str = "theft",
    cpu: tuple[float, float] = (0.01, 0.02),
    holding: Sequence[str] = (),
    failed: tuple[str, ...] = (),
    number: int = 0,
) -> Measured:
    sample = Sample(f"{source}/{label}-{together}-{number}", label, source, f"{source}:c", kind)
    one, two = alone or (together, together)
    times = dict(zip(ENGINES, cpu, strict=True)) if together is not Verdict.FORMAT else {}
    verdicts = {"one": one, "two": two, TOGETHER: together}
    return Measured(sample, verdicts, "hash", times, failed, tuple(holding))


MEASURED = (
    measured(Label.MALICIOUS, Verdict.HELD, alone=(Verdict.CLEAR, Verdict.HELD), holding=["two/R1"]),
    measured(Label.MALICIOUS, Verdict.HELD_HIGH, kind="shell", holding=["one/R2", "two/R1"]),
    measured(Label.MALICIOUS, Verdict.REFUSED, kind="shell"),
    measured(Label.MALICIOUS, Verdict.CLEAR, source="there"),
    measured(Label.MALICIOUS, Verdict.NOTES),
    measured(Label.MALICIOUS, Verdict.INCONCLUSIVE, failed=("one",)),
    measured(Label.MALICIOUS, Verdict.FORMAT),
    measured(Label.BENIGN, Verdict.HELD, kind="lesson", holding=["two/R1"]),
    measured(Label.BENIGN, Verdict.CLEAR),
    measured(Label.BENIGN, Verdict.NOTES, cpu=(0.5, 0.5)),
    measured(Label.UNLABELLED, Verdict.HELD),
)


@pytest.fixture
def everything() -> Section:
    """Return all samples as one section."""
    [section] = sections(MEASURED)
    return section


def test_recall_false_alarms_and_precision_do_not_count_format_and_unlabelled(everything: Section) -> None:
    malicious, benign = (everything.tally(TOGETHER, label) for label in (Label.MALICIOUS, Label.BENIGN))
    assert (malicious.samples, malicious.judged) == (7, 6)
    assert malicious.stopped == Share(3, 6)
    assert malicious.refused == Share(1, 6)
    assert malicious.clear == Share(1, 6)
    assert malicious.published == Share(2, 6)
    assert malicious.inconclusive == Share(1, 6)
    assert malicious.failed == 1
    assert benign.stopped == Share(1, 3)
    assert everything.precision(TOGETHER) == Share(3, 4)


def test_each_engine_is_judged_by_itself(everything: Section) -> None:
    assert everything.tally("one", Label.MALICIOUS).stopped == Share(2, 6)
    assert everything.tally("two", Label.MALICIOUS).stopped == Share(3, 6)
    assert everything.tally("two", Label.MALICIOUS).failed == 0
    assert (judges(["one"]), judges(ENGINES)) == (["one"], ["one", "two", TOGETHER])


def test_time_is_that_of_the_engine_and_together_their_sum(everything: Section) -> None:
    assert everything.cpu("one") == {"p50": 10.0, "p95": 500.0, "p99": 500.0}
    assert everything.cpu(TOGETHER) == {"p50": 30.0, "p95": 1000.0, "p99": 1000.0}


def test_a_group_has_its_own_shares(everything: Section) -> None:
    assert everything.groups("kind") == ["lesson", "shell", "theft"]
    assert everything.within("kind", "shell").tally(TOGETHER, Label.MALICIOUS).stopped == Share(2, 2)
    document = as_document([everything], [("one", "1", 1), ("two", "2", 3)])
    judge = document["sections"][0]["judges"][TOGETHER]
    assert judge["bySource"]["there"] == {"malicious": judge["bySource"]["there"]["malicious"]}
    assert judge["bySource"]["there"]["malicious"]["noKnownPattern"]["hits"] == 1
    assert judge["byKind"]["lesson"]["benign"]["stopped"]["rate"] == 1.0
    assert judge["byCampaign"].keys() == {"here:c", "there:c"}
    assert document["engines"][1] == {"name": "two", "version": "2", "adapter": 3}
    assert json.loads(json.dumps(document)) == document


def test_rules_are_counted_by_what_they_hold() -> None:
    counted = rules_that_hold(MEASURED)
    assert list(counted) == ["two/R1", "one/R2"]
    assert counted["two/R1"] == {Label.MALICIOUS: 2, Label.BENIGN: 1}


def test_what_is_held_out_is_summed_up_apart_and_never_listed() -> None:
    shown = sections(MEASURED, ["there"])
    assert [(section.name, len(section.measured)) for section in shown] == [("not held out", 10), ("held out", 1)]
    document = as_document(shown, [("one", "1", 1), ("two", "1", 1)])
    assert "results" in document["sections"][0]
    assert not {"results", "rules"} & document["sections"][1].keys()
    text = "\n".join([*report_lines(shown, ENGINES), *wrong_lines(shown, missed=True, alarms=True)])
    assert "## held out: 1 samples (1 malicious, 0 benign, 0 unlabelled)" in text
    assert "there/malicious" not in text
    assert "here/malicious-notes-0" in text


def test_wrong_verdicts_are_listed_by_kind_of_mistake(everything: Section) -> None:
    missed = list(wrong_lines([everything], missed=True, alarms=False))
    alarms = list(wrong_lines([everything], missed=False, alarms=True))
    assert sorted(line.split("\t")[0] for line in missed) == ["clear", "notes"]
    assert alarms == ["held\there\tlesson\there/benign-held-0\ttwo/R1"]


def test_a_table_has_a_line_for_each_engine_and_group(everything: Section) -> None:
    lines = list(report_lines([everything], ENGINES))
    assert lines[0] == "## all: 11 samples (7 malicious, 3 benign, 1 unlabelled)"
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    assert ["together", "benign", "0", "0", "1", "0", "1", "1", "0"] in rows
    [total] = [row for row in rows if row[0] == "together" and "[" in row[1]]
    # Held, precise, false alarms, refused of benign, clear and published of malicious, failed, time.
    counts = [cell.rpartition(" ")[2] for cell in total[1:]]
    assert counts == ["3/6", "3/4", "1/3", "0", "1/6", "2/6", "1", "1000"]
    [shell] = [row for row in rows if row[0] == "shell"]
    assert shell[1].endswith("2/2")
    assert len({len(line) for line in lines[2:7]}) == 1


def test_the_chart_is_a_picture_that_holds_every_group_and_no_markup_of_a_name() -> None:
    evil = measured(Label.MALICIOUS, Verdict.HELD, source="<script>&\u202e", kind="theft")
    text = chart(sections([*MEASURED, evil]), ENGINES)
    root = ET.fromstring(text)  # noqa: S314 - the chart that was just drawn
    words = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "<script>&\\u{202e}" in words
    assert "shell" in words
    bars = list(root.iter("{http://www.w3.org/2000/svg}rect"))
    # For each label: three judges, and the groups that have samples of it.
    assert len(bars) == (3 + 3 + 2) + (3 + 1 + 2)
    assert not list(root.iter("{http://www.w3.org/2000/svg}script"))
    assert "<script" not in text
