"""``python -m tests.corpus build --clones DIR --into DIR``, and ``disguise --corpus DIR``."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from pathlib import Path

import django


def main() -> int:
    """Build the corpus, and return 1 where a clone is missing; or measure disguises of its samples."""
    parser = argparse.ArgumentParser(prog="python -m tests.corpus", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    of_build = commands.add_parser("build", help="write the samples of the development sources, with labels.csv")
    of_build.add_argument(
        "--clones", type=Path, required=True, help="folder of bare clones: owner+name/repo, owner/name"
    )
    of_build.add_argument("--into", type=Path, required=True, help="folder to make; never commit it")
    of_disguise = commands.add_parser("disguise", help="tell how much of what is held stays held in disguise")
    of_disguise.add_argument("--corpus", type=Path, required=True, help="a folder that build has made")
    of_disguise.add_argument("--most", type=int, default=100, help="malicious samples to draw (100)")
    given = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    from tests.corpus.build import build  # noqa: PLC0415 - needs the settings

    if given.command == "disguise":
        from tests.corpus.measure_disguises import held_samples, measure  # noqa: PLC0415 - needs the settings

        samples = held_samples(given.corpus, given.most)
        kept = list(measure(samples))
        held, tried = sum(one.held for one in kept), sum(one.tried for one in kept)
        print(f"together {held} of {tried} for {len(samples)} samples that were held")
        return 0
    if given.into.exists():
        parser.error(f"{given.into} exists already; name a new folder.")
    built = build(given.clones, given.into, say=print)
    labels = Counter(row["label"] for row in built.rows)
    print(
        f"{len(built.rows)} samples in {given.into}: {', '.join(f'{count} {label}' for label, count in labels.items())}"
    )
    for reason, count in built.left_out.items():
        print(f"left out: {count} with {reason}")
    for repository in built.missing:
        print(f"no clone of {repository}", file=sys.stderr)
    return 1 if built.missing else 0


if __name__ == "__main__":
    sys.exit(main())
