"""A report as tables for a terminal, which are Markdown as well."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from submissions.evaluation.labels import Label
from submissions.evaluation.measure import TOGETHER, Measured
from submissions.evaluation.report import GROUPS, STOPPED, Section, judges, rules_that_hold
from submissions.verification.verdict import Verdict
from vskill.hidden_characters import visible

_MOST_RULES = 40


def report_lines(shown: Sequence[Section], engines: Sequence[str]) -> Iterator[str]:
    """Yield the tables of each section: totals, verdicts, time, then groups as all engines together judge them."""
    for section in shown:
        counts = [(label, sum(one.sample.label is label for one in section.measured)) for label in Label]
        named = ", ".join(f"{count:,} {label}" for label, count in counts)
        yield f"## {section.name}: {len(section.measured):,} samples ({named})"
        yield ""
        names = judges(engines)
        yield from _table(_TOTALS, (_totals(section, name) for name in names))
        yield from _table(_VERDICTS, (row for name in names for row in _verdicts(section, name)))
        last = names[-1]
        for by in GROUPS:
            rows = [_group(section, last, by, name) for name in section.groups(by)]
            yield from _table((by, "malicious held or refused", "no known pattern", "benign held or refused"), rows)
        if section.listed:
            yield from _rules(section)


_TOTALS = (
    *("engine", "malicious held or refused", "precision", "benign held or refused", "benign refused"),
    *("no known pattern, of malicious", "published, of malicious", "engine failed", "CPU ms p50 / p95 / p99"),
)


def _totals(section: Section, judge: str) -> tuple[str, ...]:
    malicious, benign = (section.tally(judge, label) for label in (Label.MALICIOUS, Label.BENIGN))
    cpu = " / ".join("-" if value is None else f"{value:.0f}" for value in section.cpu(judge).values())
    failed = sum(section.tally(judge, label).failed for label in Label)
    return (
        *(judge, str(malicious.stopped), str(section.precision(judge)), str(benign.stopped), str(benign.refused.hits)),
        *(str(malicious.clear), str(malicious.published), str(failed), cpu),
    )


_SHOWN_VERDICTS = [
    *(Verdict.REFUSED, Verdict.HELD_HIGH, Verdict.HELD, Verdict.INCONCLUSIVE),
    *(Verdict.NOTES, Verdict.CLEAR, Verdict.FORMAT),
]
_VERDICTS = ("engine", "label", *(verdict.value for verdict in _SHOWN_VERDICTS))


def _verdicts(section: Section, judge: str) -> Iterator[tuple[str, ...]]:
    for label in Label:
        tally = section.tally(judge, label)
        if tally.samples:
            yield (judge, label.value, *(str(tally.verdicts[verdict]) for verdict in _SHOWN_VERDICTS))


def _group(section: Section, judge: str, by: str, name: str) -> tuple[str, ...]:
    group = section.within(by, name)
    malicious, benign = (group.tally(judge, label) for label in (Label.MALICIOUS, Label.BENIGN))
    return (visible(name), str(malicious.stopped), str(malicious.clear), str(benign.stopped))


def _rules(section: Section) -> Iterator[str]:
    counted = rules_that_hold(section.measured)
    rows = [
        (visible(rule), *(str(labels[label]) for label in (Label.MALICIOUS, Label.BENIGN, Label.UNLABELLED)))
        for rule, labels in list(counted.items())[:_MOST_RULES]
    ]
    if rows:
        yield from _table(("rule that holds", "malicious", "benign", "unlabelled"), rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    table = [tuple(head), *map(tuple, rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    for number, row in enumerate(table):
        yield "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        if number == 0:
            yield "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    yield ""


def wrong_lines(shown: Sequence[Section], *, missed: bool, alarms: bool) -> Iterator[str]:
    """Yield the samples that were judged wrongly, one a line, but none of those that are held out.

    ``missed`` are malicious ones that would be published, ``alarms`` benign ones that are held or refused.
    """
    for section in shown:
        if not section.listed:
            continue
        for one in section.measured:
            if (missed and _is_missed(one)) or (alarms and _is_alarm(one)):
                rules = ", ".join(one.holding)
                verdict = one.verdicts[TOGETHER]
                yield "\t".join((verdict, one.sample.source, one.sample.kind, one.sample.path, visible(rules)))


def _is_missed(one: Measured) -> bool:
    published = (Verdict.CLEAR, Verdict.NOTES)
    return one.sample.label is Label.MALICIOUS and one.verdicts[TOGETHER] in published


def _is_alarm(one: Measured) -> bool:
    return one.sample.label is Label.BENIGN and one.verdicts[TOGETHER] in STOPPED
