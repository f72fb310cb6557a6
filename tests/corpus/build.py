"""Write the samples of all sources into one folder, with labels.csv and the sources beside them."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from submissions.evaluation.labels import COLUMNS, Label
from submissions.source.tree_entries import collisions, odd_name
from tests.corpus.clones import find_clone, open_clone
from tests.corpus.duplicates import content_hash, normalised_hash
from tests.corpus.markers import without_markers
from tests.corpus.samples import RawSample, samples_of, with_files
from tests.corpus.shapes import as_skill
from tests.corpus.sources import SOURCES, Source

# The columns that evaluate needs, and those that say where a sample is from.
_COLUMNS = (*COLUMNS, "licence", "origin", "commit", "sha256", "shaped")


@dataclass
class Built:
    """What came of a build: ``rows`` of labels.csv, and what was left out, counted by reason."""

    rows: list[dict[str, str]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    missing: list[str] = field(default_factory=list)


def build(
    clones: Path, into: Path, sources: Iterable[Source] = SOURCES, say: Callable[[str], None] = lambda _line: None
) -> Built:
    """Build the corpus from the ``clones`` of ``sources`` in the folder ``into``, which must not exist yet.

    Of samples that say the same, the first is kept; those that appear with both labels are all left out. ``say`` is
    told of each source. A source without a clone is among ``missing``.
    """
    into.mkdir(parents=True)
    built = Built()
    kept: dict[str, tuple[RawSample, str, bool]] = {}
    contradicted: set[str] = set()
    commits: dict[str, str] = {}
    for source in sources:
        git_dir = find_clone(clones, source.repository)
        if git_dir is None:
            built.missing.append(source.repository)
            continue
        clone = open_clone(git_dir)
        commits[source.repository] = clone.commit
        before = len(kept)
        for raw in samples_of(source, clone):
            files, shaped = as_skill(without_markers(raw.files, source.markers), raw.origin)
            sample = with_files(raw, files)
            key = normalised_hash(files)
            if key not in kept:
                kept[key] = (sample, content_hash(files), shaped)
            elif kept[key][0].rule.label is not raw.rule.label:
                contradicted.add(key)
            else:
                same = kept[key][1] == content_hash(files)
                built.left_out["the same content" if same else "nearly the same text"] += 1
        say(f"{source.repository}: {len(kept) - before} samples of {clone.commit[:12]}")
    for key in contradicted:
        del kept[key]
        built.left_out["the same text with both labels"] += 1
    for sample, digest, shaped in kept.values():
        _write(into, sample, digest, shaped, commits, built)
    _write_lists(into, built, commits, sources)
    return built


def _write(into: Path, sample: RawSample, digest: str, shaped: bool, commits: dict[str, str], built: Built) -> None:
    files = {path: content for path, content in sample.files.items() if odd_name(path) is None}
    for _first, second in collisions(files):
        files.pop(second, None)
    # The path tells nothing but the source.
    path = f"{sample.source.repository.replace('/', '+')}/{digest[:16]}"
    for name, content in files.items():
        target = into / path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        # Never executable, and never through a link: "x" fails on whatever exists.
        with target.open("xb") as file:
            file.write(content)
    built.rows.append(
        {
            "path": path,
            "label": sample.rule.label.value,
            "source": sample.source.repository,
            "campaign": f"{sample.source.repository.rpartition('/')[2]}:{sample.campaign}",
            "kind": sample.kind,
            "licence": sample.source.licence,
            "origin": sample.origin,
            "commit": commits[sample.source.repository],
            "sha256": digest,
            "shaped": "yes" if shaped else "",
        }
    )


def _write_lists(into: Path, built: Built, commits: dict[str, str], sources: Iterable[Source]) -> None:
    with (into / "labels.csv").open("x", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, _COLUMNS)
        writer.writeheader()
        writer.writerows(sorted(built.rows, key=lambda row: row["path"]))
    counts = Counter((row["source"], row["label"]) for row in built.rows)
    listed = [
        {
            "repository": source.repository,
            "commit": commits.get(source.repository),
            "licence": source.licence,
            **{label.value: counts[source.repository, label.value] for label in Label},
        }
        for source in sources
    ]
    (into / "sources.json").write_text(json.dumps(listed, indent=1), encoding="utf-8")
