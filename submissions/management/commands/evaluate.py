"""Measure verification on a folder of labelled skills."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from asgiref.sync import async_to_sync
from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from submissions.evaluation.chart import chart
from submissions.evaluation.held_out import Fold, fold_lines, folds, in_turn
from submissions.evaluation.labels import Sample, of_sources, read_labels, require_sources
from submissions.evaluation.measure import Measured, measure
from submissions.evaluation.report import as_document, sections
from submissions.evaluation.stored_runs import StoredRuns
from submissions.evaluation.tables import report_lines, wrong_lines
from submissions.verification.engines import ENGINES, get_engines
from submissions.verification.engines.base import Engine
from submissions.verification.engines.own import OwnEngine
from submissions.verification.errors import EngineUnavailable
from vskill.errors import VskillError


class Command(BaseCommand):
    """Judge every sample as the server would, and report how often that is right and what it costs."""

    # No check of the settings, because those of a server have nothing to do with it.
    requires_system_checks: list[str] = []  # noqa: RUF012 - as Django declares it
    help = (
        "Measure the engines on labelled skills: recall, precision, false alarms and errors with intervals of 95 %, in "
        "total and by source, campaign and kind, and the processor time. No database is needed, and nothing of a "
        "sample is run. A run that was interrupted goes on where it stopped."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments."""
        parser.add_argument("--corpus", required=True, type=Path, metavar="DIR", help="folder of the samples")
        parser.add_argument(
            "--labels", required=True, type=Path, metavar="CSV", help="path, label, source, campaign, kind of each"
        )
        parser.add_argument(
            "--engine",
            action="append",
            choices=sorted(ENGINES),
            metavar="NAME",
            help=f"an engine to measure; may be repeated (default: what is installed of {', '.join(ENGINES)})",
        )
        parser.add_argument("--only", action="append", default=[], metavar="SOURCE", help="measure this source alone")
        parser.add_argument(
            "--held-out",
            action="append",
            default=[],
            metavar="SOURCE",
            help="sum this source up apart, and list nothing of it",
        )
        parser.add_argument(
            "--in-turn",
            action="store_true",
            help="also hold each source out in turn: our rules judge it where they earned that on the others",
        )
        parser.add_argument(
            "--list", choices=["missed", "alarms", "both"], help="list the samples that are judged wrongly"
        )
        parser.add_argument("--json", type=Path, metavar="FILE", help="write the report as JSON")
        parser.add_argument("--chart", type=Path, metavar="FILE", help="draw the report as SVG")
        parser.add_argument("--processes", type=int, default=1, metavar="N", help="engines at once (default 1)")
        parser.add_argument(
            "--results",
            type=Path,
            metavar="DIR",
            help="where results are kept (default: .results in the corpus)",
        )
        parser.add_argument("--fresh", action="store_true", help="run every engine again, whatever is kept")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Measure, print the tables and write the files."""
        try:
            everything = read_labels(options["labels"], options["corpus"])
            samples = of_sources(everything, options["only"])
            require_sources(samples, options["held_out"])
            engines = _engines(options["engine"])
            measured = async_to_sync(self._measure)(samples, engines, options)
        except (VskillError, OSError) as error:
            raise CommandError(str(error)) from error
        shown = sections(measured, options["held_out"])
        names = [engine.name for engine in engines]
        turns: list[Fold] = []
        if options["in_turn"]:
            if OwnEngine.name not in names:
                raise CommandError(f"--in-turn is about the rules of {OwnEngine.name}, which is not measured.")
            shown += in_turn(measured, OwnEngine.name)
            turns = folds(measured, OwnEngine.name)
        for line in report_lines(shown, names):
            self.stdout.write(line)
        for line in fold_lines(turns):
            self.stdout.write(line)
        if chosen := options["list"]:
            for line in wrong_lines(shown, missed=chosen != "alarms", alarms=chosen != "missed"):
                self.stdout.write(line)
        if options["json"]:
            document = as_document(shown, [(one.name, one.version, one.adapter) for one in engines])
            document["folds"] = {fold.source: sorted(fold.left_out) for fold in turns}
            options["json"].write_text(json.dumps(document, indent=1), encoding="utf-8")
        if options["chart"]:
            options["chart"].write_text(chart(shown, names), encoding="utf-8")

    async def _measure(
        self, samples: Sequence[Sample], engines: Sequence[Engine], options: dict[str, Any]
    ) -> list[Measured]:
        folder = options["results"] or options["corpus"] / ".results"
        with tqdm(total=len(samples), desc="measuring", unit="", file=sys.stderr, mininterval=1, disable=None) as bar:

            def done(_measured: Measured) -> None:
                bar.update()

            return await measure(
                samples,
                options["corpus"],
                engines,
                stored=StoredRuns(folder, read=not options["fresh"]),
                processes=max(1, options["processes"]),
                done=done,
            )


def _engines(names: Sequence[str] | None) -> list[Engine]:
    """Return the named engines, or all that are installed; raises CommandError where one cannot be used."""
    usable: list[Engine] = []
    for engine in get_engines(names or ENGINES):
        try:
            _ = engine.version
        except EngineUnavailable as error:
            if names:
                raise CommandError(f"{error} Nothing was measured.") from error
            continue
        usable.append(engine)
    if not usable:
        raise CommandError("No engine is installed, so nothing was measured.")
    return usable
