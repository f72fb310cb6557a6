"""Sum up a measure: for each engine and for all together, in total and by source, campaign and kind."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from submissions.evaluation.labels import Label, Sample
from submissions.evaluation.measure import TOGETHER, Measured
from submissions.evaluation.statistics import Share, percentile
from submissions.verification.verdict import Verdict

FORMAT: Final = 1
STOPPED: Final = frozenset({Verdict.REFUSED, Verdict.HELD_HIGH, Verdict.HELD})
GROUPS: Final[dict[str, Callable[[Sample], str]]] = {
    "source": lambda sample: sample.source,
    "campaign": lambda sample: sample.campaign,
    "kind": lambda sample: sample.kind,
}
_PERCENTILES: Final = (50, 95, 99)


@dataclass(frozen=True)
class Tally:
    """What one engine, or all together, said about samples of one label.

    A sample whose format is refused is not ``judged``: that accuses nobody, and no engine has read it. ``stopped`` are
    those that are held or refused, ``clear`` those of which nothing is said but that no known pattern was found, and
    ``published`` those without a hold, notes included.
    """

    verdicts: Counter[Verdict]
    failed: int = 0

    @property
    def samples(self) -> int:
        """Return how many there are, with those whose format is refused."""
        return self.verdicts.total()

    @property
    def judged(self) -> int:
        """Return how many engines have read."""
        return self.samples - self.verdicts[Verdict.FORMAT]

    @property
    def stopped(self) -> Share:
        """Return the share that is held or refused."""
        return self._share(*STOPPED)

    @property
    def refused(self) -> Share:
        """Return the share that is refused without a person."""
        return self._share(Verdict.REFUSED)

    @property
    def clear(self) -> Share:
        """Return the share of which it is said that no known pattern was found."""
        return self._share(Verdict.CLEAR)

    @property
    def published(self) -> Share:
        """Return the share that would be published, with notes or without."""
        return self._share(Verdict.CLEAR, Verdict.NOTES)

    @property
    def inconclusive(self) -> Share:
        """Return the share that was not scanned completely, and is held for that alone."""
        return self._share(Verdict.INCONCLUSIVE)

    def _share(self, *verdicts: Verdict) -> Share:
        return Share(sum(self.verdicts[one] for one in verdicts), self.judged)

    def as_json(self) -> dict[str, Any]:
        """Return plain values for ``json.dumps``."""
        return {
            "samples": self.samples,
            "formatRefused": self.verdicts[Verdict.FORMAT],
            "judged": self.judged,
            "stopped": self.stopped.as_json(),
            "refused": self.refused.as_json(),
            "noKnownPattern": self.clear.as_json(),
            "published": self.published.as_json(),
            "inconclusive": self.inconclusive.as_json(),
            "engineFailed": self.failed,
            "verdicts": {verdict.value: self.verdicts[verdict] for verdict in Verdict if self.verdicts[verdict]},
        }


@dataclass(frozen=True)
class Section:
    """The samples that are summed up together, under a name; those that are not ``listed`` are only counted."""

    name: str
    measured: tuple[Measured, ...]
    listed: bool = True

    def within(self, by: str, name: str) -> Section:
        """Return the samples of one group, see ``groups``."""
        return replace(self, measured=tuple(one for one in self.measured if GROUPS[by](one.sample) == name))

    def tally(self, judge: str, label: Label) -> Tally:
        """Return what ``judge``, an engine or ``TOGETHER``, said about the samples of ``label``."""
        mine = [one for one in self.measured if one.sample.label is label]
        failed = sum(bool(one.failed) if judge == TOGETHER else judge in one.failed for one in mine)
        return Tally(Counter(one.verdicts[judge] for one in mine), failed)

    def precision(self, judge: str) -> Share:
        """Return which share of what is stopped is malicious; unlabelled samples do not count."""
        right, wrong = (self.tally(judge, label).stopped.hits for label in (Label.MALICIOUS, Label.BENIGN))
        return Share(right, right + wrong)

    def groups(self, by: str) -> list[str]:
        """Return the names of the groups by ``source``, ``campaign`` or ``kind``, in order; the empty one is none."""
        return sorted({name for one in self.measured if (name := GROUPS[by](one.sample))})

    def cpu(self, judge: str) -> dict[str, float | None]:
        """Return the percentiles of the milliseconds of processor time that a sample took; ``TOGETHER`` is the sum."""
        spent = [
            sum(one.cpu_seconds.values()) if judge == TOGETHER else one.cpu_seconds[judge]
            for one in self.measured
            if one.cpu_seconds and (judge == TOGETHER or judge in one.cpu_seconds)
        ]
        found = {f"p{percent}": percentile(spent, percent) for percent in _PERCENTILES}
        return {name: None if value is None else round(value * 1000, 1) for name, value in found.items()}


def sections(measured: Iterable[Measured], held_out: Collection[str] = ()) -> list[Section]:
    """Return all samples as one section, or those of the ``held_out`` sources apart from the rest."""
    measured = tuple(measured)
    if not held_out:
        return [Section("all", measured)]
    apart = tuple(one for one in measured if one.sample.source in held_out)
    rest = tuple(one for one in measured if one.sample.source not in held_out)
    return [Section("not held out", rest), Section("held out", apart, listed=False)]


def judges(engines: Sequence[str]) -> list[str]:
    """Return who gives verdicts: each engine alone, and all together where there are several."""
    return [*engines, TOGETHER] if len(engines) > 1 else list(engines)


def rules_that_hold(measured: Iterable[Measured]) -> dict[str, Counter[Label]]:
    """Return for each rule, as ``engine/rule``, how many samples of which label it holds, those of most first."""
    counted: defaultdict[str, Counter[Label]] = defaultdict(Counter)
    for one in measured:
        for rule in one.holding:
            counted[rule][one.sample.label] += 1
    return dict(sorted(counted.items(), key=lambda item: (-item[1].total(), item[0])))


def as_document(shown: Sequence[Section], engines: Sequence[tuple[str, str, int]]) -> dict[str, Any]:
    """Return the report as plain values for ``json.dumps``.

    ``engines`` are names with their versions and those of their adapters. The samples of a section that is held out
    are counted and not listed, so that nobody writes rules for them.
    """
    names = judges([name for name, _version, _adapter in engines])
    return {
        "format": FORMAT,
        "engines": [{"name": name, "version": version, "adapter": adapter} for name, version, adapter in engines],
        "sections": [{"name": section.name, **_section(section, names)} for section in shown],
    }


def _section(section: Section, names: Sequence[str]) -> dict[str, Any]:
    counts = Counter(one.sample.label for one in section.measured)
    value: dict[str, Any] = {
        "samples": {label.value: counts[label] for label in Label},
        "judges": {name: _judge(section, name) for name in names},
    }
    if section.listed:
        value["rules"] = {
            rule: {label.value: counted[label] for label in Label}
            for rule, counted in rules_that_hold(section.measured).items()
        }
        value["results"] = [_result(one) for one in section.measured]
    return value


def _judge(section: Section, judge: str) -> dict[str, Any]:
    return {
        "precision": section.precision(judge).as_json(),
        "cpuMilliseconds": section.cpu(judge),
        **_labels(section, judge),
        **{
            f"by{by.title()}": {name: _labels(section.within(by, name), judge) for name in section.groups(by)}
            for by in GROUPS
        },
    }


def _labels(section: Section, judge: str) -> dict[str, Any]:
    tallies = {label.value: section.tally(judge, label) for label in Label}
    return {label: tally.as_json() for label, tally in tallies.items() if tally.samples}


def _result(one: Measured) -> dict[str, Any]:
    sample = one.sample
    return {
        "path": sample.path,
        "label": sample.label.value,
        "source": sample.source,
        "campaign": sample.campaign,
        "kind": sample.kind,
        "contentHash": one.content_hash,
        "verdicts": {name: verdict.value for name, verdict in one.verdicts.items()},
        "holding": list(one.holding),
    }
