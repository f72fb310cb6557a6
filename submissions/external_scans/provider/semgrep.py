"""Run semgrep with the rules beside this module over a folder, in a child process, and read what it found."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from submissions.sandbox.child_processes import ChildLimits, ChildOutcome, run_child
from vskill.errors import VskillError
from vskill.hidden_characters import visible

RULES: Final = Path(__file__).with_name("rules.yaml")
_GIB: Final = 1024**3
_MIB: Final = 1024**2
# semgrep reserves more address space than it uses, and does not start with two gibibytes.
LIMITS: Final = ChildLimits(
    seconds=180,
    output_bytes=16 * _MIB,
    address_space=4 * _GIB,
    cpu_seconds=120,
    file_bytes=16 * _MIB,
    network=False,
)
MOST_FINDINGS: Final = 200
_SEVERITIES: Final = {"CRITICAL": "critical", "ERROR": "high", "HIGH": "high", "WARNING": "medium", "MEDIUM": "medium"}


class ScannerFailed(VskillError):
    """semgrep gave no result that can be used; the message says why."""

    code = "scanner_failed"


@dataclass(frozen=True)
class SemgrepResult:
    """The version of semgrep, and its findings in the form of a result that is posted."""

    version: str
    findings: tuple[dict[str, Any], ...]


async def run_semgrep(program: str, folder: Path) -> SemgrepResult:
    """Scan ``folder`` with ``program`` and return what was found; raise ScannerFailed.

    Nothing in the folder can switch rules off: neither its ignore files nor comments are honoured.
    """
    with tempfile.TemporaryDirectory(prefix="vskill-semgrep-") as scratch:
        environment = {
            "PATH": f"{Path(program).parent}{os.pathsep}{os.defpath}",
            "HOME": scratch,
            "TMPDIR": scratch,
            "LANG": "C.UTF-8",
            "SEMGREP_SEND_METRICS": "off",
            "SEMGREP_ENABLE_VERSION_CHECK": "0",
            "SEMGREP_SETTINGS_FILE": str(Path(scratch) / "settings.yml"),
            "OTEL_SDK_DISABLED": "true",
        }
        command = [
            program,
            "scan",
            f"--config={RULES}",
            "--json",
            "--quiet",
            "--metrics=off",
            "--disable-version-check",
            "--disable-nosem",
            "--no-git-ignore",
            "--x-ignore-semgrepignore-files",
            "--jobs=1",
            "--timeout=10",
            "--max-target-bytes=2000000",
            ".",
        ]
        try:
            result = await run_child(command, env=environment, cwd=folder, limits=LIMITS)
        except OSError as error:
            raise ScannerFailed(f"semgrep could not be started: {error.strerror}.") from error
    if result.outcome is not ChildOutcome.EXITED:
        raise ScannerFailed(f"semgrep was stopped: {result.outcome}.")
    # 1 says that something was found.
    if result.returncode not in (0, 1):
        raise ScannerFailed(f"semgrep ended with status {result.returncode}.")
    return read_report(result.stdout, folder)


def read_report(output: bytes, folder: Path) -> SemgrepResult:
    """Return what semgrep printed about ``folder`` in our terms; raise ScannerFailed where that is no report."""
    try:
        report = json.loads(output)
        found = [_finding(item, folder) for item in report["results"]]
        found += [_unread(item) for item in report["errors"] if item.get("path")]
        broken = [item for item in report["errors"] if not item.get("path") and item.get("level") == "error"]
        version = str(report["version"])
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise ScannerFailed(f"semgrep printed no report: {type(error).__name__}.") from error
    if broken:
        raise ScannerFailed(f"semgrep failed: {visible(str(broken[0].get('message', '')), 200)}")
    return SemgrepResult(version, tuple(found[:MOST_FINDINGS]))


def _finding(item: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    extra = item["extra"]
    metadata = extra.get("metadata") or {}
    path, line = str(item["path"]).removeprefix("./"), int(item["start"]["line"])
    return {
        # semgrep puts the folders of the rules before the id.
        "ruleId": str(item["check_id"]).rsplit(".", 1)[-1],
        "severity": _SEVERITIES.get(str(extra["severity"]).upper(), "low"),
        "title": str(metadata.get("title") or item["check_id"]),
        "file": path,
        "line": line,
        "excerpt": _line_of(folder / path, line),
        "why": str(extra["message"]).strip(),
        "advice": str(metadata.get("advice", "")),
    }


def _unread(item: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "ruleId": "not-read",
        "severity": "info",
        "title": "Not read completely",
        "file": str(item["path"]).removeprefix("./"),
        "line": None,
        "why": visible(str(item.get("message", "")), 200),
    }


def _line_of(path: Path, line: int) -> str:
    """Return one line of a file, cut to what is shown; semgrep itself shows it only to who has an account."""
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                if number == line:
                    return raw[:240].decode("utf-8", "replace").strip()
    except OSError:
        return ""
    return ""
