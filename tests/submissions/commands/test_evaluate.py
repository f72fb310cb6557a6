"""``manage.py evaluate`` on a small corpus, with the real engine."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from submissions.evaluation.labels import COLUMNS
from submissions.evaluation.stored_runs import StoredRuns
from submissions.source.plain_folder import open_folder
from submissions.verification.engines import get_engines
from submissions.verification.engines.base import EngineResult, EngineStatus
from submissions.verification.packages import read_package
from submissions.verification.runner import EngineRun
from tests.git_factory import skill_md
from tests.submissions.commands.test_scan import THIEF

ROWS = [
    ("thief", "malicious", "a", "a:1", "theft"),
    ("quiet", "malicious", "b", "b:1", "policy"),
    ("honest", "benign", "a", "a:2", "ordinary"),
    ("broken", "benign", "b", "b:2", "ordinary"),
]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Return a folder with four samples and their labels."""
    files = {
        "thief": {"SKILL.md": skill_md("thief"), "run.py": THIEF},
        "quiet": {"SKILL.md": skill_md("quiet")},
        "honest": {"SKILL.md": skill_md("honest"), "notes.md": "# Notes\n"},
        "broken": {"SKILL.md": "no frontmatter"},
    }
    for name, content in files.items():
        (tmp_path / name).mkdir()
        for path, text in content.items():
            (tmp_path / name / path).write_text(text)
    label(tmp_path, ROWS)
    return tmp_path


def label(corpus: Path, rows: Sequence[tuple[str, ...]], columns: tuple[str, ...] = COLUMNS) -> None:
    with (corpus / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows([columns, *rows])


def evaluate(corpus: Path, *words: str) -> tuple[dict[str, Any], str]:
    """Return the report as JSON and as text."""
    said = io.StringIO()
    given = ["--corpus", str(corpus), "--labels", str(corpus / "labels.csv"), "--engine", "skilltotal"]
    call_command("evaluate", *given, "--json", str(corpus / "report.json"), *words, stdout=said, stderr=io.StringIO())
    report: dict[str, Any] = json.loads((corpus / "report.json").read_text())
    return report, said.getvalue()


def test_a_corpus_is_measured_as_the_server_judges_it(corpus: Path) -> None:
    report, said = evaluate(corpus, "--chart", str(corpus / "chart.svg"), "--processes", "2", "--list", "both")
    [section] = report["sections"]
    judge = section["judges"]["skilltotal"]
    assert (judge["malicious"]["stopped"]["hits"], judge["malicious"]["judged"]) == (1, 2)
    assert judge["malicious"]["noKnownPattern"]["hits"] == 1
    assert judge["benign"]["formatRefused"] == 1
    assert judge["benign"]["stopped"] == {"hits": 0, "of": 1, "rate": 0.0, "low": 0.0, "high": 0.7935}
    assert judge["cpuMilliseconds"]["p50"] > 0
    verdicts = {one["path"]: one["verdicts"]["together"] for one in section["results"]}
    assert (verdicts["quiet"], verdicts["honest"], verdicts["broken"]) == ("clear", "clear", "format")
    assert "clear\tb\tpolicy\tquiet" in said
    assert (corpus / "chart.svg").read_text().startswith("<svg ")


def test_what_is_kept_is_not_run_again(corpus: Path) -> None:
    first, _said = evaluate(corpus)
    kept = sorted((corpus / ".results").rglob("*.json"))
    assert len(kept) == 3
    # A stored result stands for the engine, whatever it would say now, until it is asked to run again.
    for file in kept:
        value = json.loads(file.read_text())
        file.write_text(json.dumps({**value, "result": {**value["result"], "blocked": True}}))
    again, _said = evaluate(corpus)
    assert again["sections"][0]["judges"]["skilltotal"]["benign"]["stopped"]["hits"] == 1
    fresh, _said = evaluate(corpus, "--fresh")
    for report in (first, fresh):
        report["sections"][0]["judges"]["skilltotal"].pop("cpuMilliseconds")
    assert fresh == first


async def test_results_belong_to_one_content_and_one_version_and_failures_are_not_kept(corpus: Path) -> None:
    (corpus / "read").mkdir()
    package = await read_package(open_folder(corpus / "honest"), "", destination=corpus / "read")
    [engine] = get_engines(["skilltotal"])
    stored = StoredRuns(corpus / "kept")
    run = EngineRun(EngineResult(engine.name, engine.version, EngineStatus.COMPLETE, capabilities=("x",)), 0.25)
    assert stored.get(engine, package) is None
    stored.put(engine, package, run)
    assert stored.get(engine, package) == run
    assert StoredRuns(corpus / "kept", read=False).get(engine, package) is None
    engine.adapter += 1  # type: ignore[misc]
    assert stored.get(engine, package) is None
    stored.put(engine, package, EngineRun(EngineResult(engine.name, "1", EngineStatus.TIMED_OUT)))
    assert stored.get(engine, package) is None
    engine.adapter -= 1  # type: ignore[misc]
    [file] = (corpus / "kept").rglob("*.json")
    file.write_text("{")
    assert stored.get(engine, package) is None


def test_sources_are_chosen_and_held_out(corpus: Path) -> None:
    report, _said = evaluate(corpus, "--only", "a")
    assert report["sections"][0]["samples"] == {"malicious": 1, "benign": 1, "unlabelled": 0}
    report, said = evaluate(corpus, "--held-out", "b", "--list", "missed")
    assert [(one["name"], one["samples"]["malicious"]) for one in report["sections"]] == [
        ("not held out", 1),
        ("held out", 1),
    ]
    assert "quiet" not in said


def test_each_source_is_held_out_in_turn(corpus: Path) -> None:
    (corpus / "quiet" / "run.py").write_text((corpus / "thief" / "run.py").read_text() + "\nprint(1)\n")
    report, said = evaluate(corpus, "--engine", "vskill", "--in-turn")
    held = {one["name"]: one["judges"]["vskill"]["malicious"]["stopped"]["hits"] for one in report["sections"]}
    # Each of the two sources has what the rule was seen to hold in the other.
    assert held == {"all": 2, "held out in turn": 2, "held out in turn, untried rules judge too": 2}
    assert report["folds"] == {"a": [], "b": []}
    assert "a is judged by all rules." in said
    label(corpus, ROWS[:1] + ROWS[2:])
    report, said = evaluate(corpus, "--engine", "vskill", "--in-turn")
    held = {one["name"]: one["judges"]["vskill"]["malicious"]["stopped"]["hits"] for one in report["sections"]}
    assert held == {"all": 1, "held out in turn": 0, "held out in turn, untried rules judge too": 1}
    assert "results" not in report["sections"][1]


def test_only_our_own_rules_are_left_out_in_turn(corpus: Path) -> None:
    with pytest.raises(CommandError, match="not measured"):
        evaluate(corpus, "--in-turn")


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (("thief", "bad", "a", "", ""), r"labels\.csv:2: 'bad' is no label"),
        (("nowhere", "benign", "a", "", ""), "there is no folder nowhere"),
        (("../thief", "benign", "a", "", ""), "is no folder in the corpus"),
        (("/etc", "benign", "a", "", ""), "is no folder in the corpus"),
        (("thief",), "'' is no label"),
    ],
)
def test_labels_that_cannot_be_used_are_named_with_their_line(corpus: Path, row: tuple[str, ...], why: str) -> None:
    label(corpus, [row])
    with pytest.raises(CommandError, match=why):
        evaluate(corpus)


def test_what_is_wrong_with_the_whole_list_is_said(corpus: Path) -> None:
    label(corpus, [ROWS[0], ROWS[0]])
    with pytest.raises(CommandError, match="thief is named twice"):
        evaluate(corpus)
    label(corpus, [], COLUMNS[:3])
    with pytest.raises(CommandError, match="no column campaign, kind"):
        evaluate(corpus)
    label(corpus, [])
    with pytest.raises(CommandError, match="names no sample"):
        evaluate(corpus)
    label(corpus, ROWS)
    for option in ("--only", "--held-out"):
        with pytest.raises(CommandError, match="No sample is from nosuch"):
            evaluate(corpus, option, "nosuch")
