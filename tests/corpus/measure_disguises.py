"""Measure how much of what is held in a corpus stays held after each disguise; no sample is run."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from submissions.evaluation.labels import Label, read_labels
from submissions.source.plain_folder import open_folder
from submissions.verification.engine.judging import judge
from submissions.verification.package_contents import inspect_files
from tests.corpus.disguises import DISGUISES

_HOLDS: Final = frozenset({"high", "critical"})


@dataclass(frozen=True)
class Kept:
    """Of ``tried`` samples that were held before a disguise, how many are still held, and those that are not."""

    disguise: str
    tried: int
    held: int
    missed: tuple[str, ...]


def is_held(files: Mapping[str, bytes]) -> bool:
    """Return whether our engine holds a skill of these files, with its archives opened as the server opens them."""
    with tempfile.TemporaryDirectory(prefix="vskill-disguise-") as scratch:
        folder = Path(scratch)
        for path, content in files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        inspect_files(folder, {entry.path: entry for entry in open_folder(folder).entries})
        return any(severity in _HOLDS for _sign, severity in judge(folder).findings)


def held_samples(corpus: Path, most: int, label: Label = Label.MALICIOUS) -> dict[str, dict[str, bytes]]:
    """Return the files of the samples that are held, of as many as ``most`` that are drawn from ``corpus``."""
    samples = [one for one in read_labels(corpus / "labels.csv", corpus) if one.label is label]
    random.Random(1).shuffle(samples)
    found = ((one.path, _files(corpus / one.path)) for one in samples[:most])
    return {path: files for path, files in found if is_held(files)}


def measure(samples: Mapping[str, Mapping[str, bytes]], say: Callable[[str], object] = print) -> Iterator[Kept]:
    """Yield what is still held after each disguise that applies, and say it."""
    for name, disguise in DISGUISES.items():
        disguised = {path: disguise(files) for path, files in samples.items()}
        tried = {path: files for path, files in disguised.items() if files is not None}
        missed = tuple(path for path, files in tried.items() if not is_held(files))
        kept = Kept(name, len(tried), len(tried) - len(missed), missed)
        share = f"{kept.held / kept.tried:.2f}" if kept.tried else "-"
        say(f"{name:22} {kept.held:5} of {kept.tried:5}  {share}")
        yield kept


def _files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }
