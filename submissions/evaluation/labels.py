"""Read the labels of a corpus: a CSV file with one line for each sample."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Final

from vskill.errors import VskillError
from vskill.hidden_characters import visible

COLUMNS: Final = ("path", "label", "source", "campaign", "kind")


class BadLabels(VskillError):
    """The labels of a corpus cannot be used as they are."""

    code = "bad_labels"


class Label(StrEnum):
    """What a sample is known to be."""

    MALICIOUS = "malicious"
    BENIGN = "benign"
    UNLABELLED = "unlabelled"


@dataclass(frozen=True)
class Sample:
    """One skill of a corpus.

    ``path`` is its folder in the corpus. ``source`` is where it was collected, ``campaign`` names samples that belong
    together, ``kind`` the kind of attack, or what is special about a benign one.
    """

    path: str
    label: Label
    source: str
    campaign: str
    kind: str


def read_labels(file: Path, corpus: Path) -> list[Sample]:
    """Return the samples of a CSV file with the columns ``COLUMNS``; other columns are passed over.

    Raises BadLabels, with the line, for a column that is missing, an unknown label, a path that is named twice or leads
    out of ``corpus``, and a folder that is not there.
    """
    samples: dict[str, Sample] = {}
    with file.open(encoding="utf-8", newline="") as lines:
        reader = csv.DictReader(lines)
        missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
        if missing:
            raise BadLabels(f"{file} has no column {', '.join(missing)}. Needed: {', '.join(COLUMNS)}.")
        for row in reader:
            sample = _sample(row, f"{file}:{reader.line_num}")
            if sample.path in samples:
                raise BadLabels(f"{file}:{reader.line_num}: {visible(sample.path)} is named twice.")
            if not (corpus / sample.path).is_dir():
                raise BadLabels(f"{file}:{reader.line_num}: there is no folder {visible(sample.path)} in {corpus}.")
            samples[sample.path] = sample
    if not samples:
        raise BadLabels(f"{file} names no sample.")
    return list(samples.values())


def _sample(row: dict[str, str], place: str) -> Sample:
    # A line that is too short has None.
    values = {name: (row[name] or "").strip() for name in COLUMNS}
    try:
        label = Label(values["label"])
    except ValueError:
        known = ", ".join(Label)
        raise BadLabels(f"{place}: {visible(values['label'])!r} is no label. Known: {known}.") from None
    path = PurePosixPath(values["path"])
    if not values["path"] or path.is_absolute() or ".." in path.parts:
        raise BadLabels(f"{place}: {visible(values['path'])!r} is no folder in the corpus.")
    return Sample(path.as_posix(), label, values["source"], values["campaign"], values["kind"])


def of_sources(samples: Iterable[Sample], only: Collection[str]) -> list[Sample]:
    """Return the samples of some sources, all of them where none is named; raises BadLabels for an unknown source."""
    samples = list(samples)
    require_sources(samples, only)
    return [sample for sample in samples if not only or sample.source in only]


def require_sources(samples: Iterable[Sample], names: Collection[str]) -> None:
    """Raise BadLabels unless each of ``names`` is the source of a sample."""
    known = {sample.source for sample in samples}
    if unknown := sorted(set(names) - known):
        raise BadLabels(f"No sample is from {', '.join(unknown)}. Sources: {', '.join(sorted(known))}.")
