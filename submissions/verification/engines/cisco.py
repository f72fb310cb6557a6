"""The adapter of Cisco's scanner of skills (PyPI cisco-ai-skill-scanner, Apache-2.0), which is installed apart.

It is optional: `make engines` installs it into a virtual environment of its own, where `VSKILL_CISCO` may name another.
Only its static analysers run: no model, no network. On 1,494 benign skills its findings from severity high flagged
8.9 %, so whoever names it in a policy reviews more. What it cannot do becomes inconclusive: it raises on a SKILL.md in
Latin-1, on odd names of files and on deep JSON, and a repetitive file can take more memory or time than it is given.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from submissions.verification.engines.base import Engine, EngineResult, EngineStatus
from submissions.verification.errors import EngineUnavailable
from submissions.verification.findings import Finding, FindingKind, Severity, strongest_first
from vskill.hidden_characters import visible

MAX_FINDINGS: Final = 300
_PACKAGE: Final = "cisco-ai-skill-scanner"
_SEVERITIES: Final = {**{one.name: one for one in Severity}, "SAFE": Severity.INFO}


class Cisco(Engine):
    """Run Cisco's scanner, which takes 5 to 20 s per skill, most of it to start."""

    name = "cisco"
    adapter = 1

    @property
    def version(self) -> str:
        """Return the version of the package beside the program; raises EngineUnavailable where there is none."""
        program = Path(settings.CISCO)
        if os.access(program, os.X_OK):
            places = [str(one) for one in program.parent.parent.glob("lib/python*/site-packages")]
            for found in metadata.distributions(name=_PACKAGE, path=places):
                return found.version
        raise EngineUnavailable(
            "The engine cisco is not installed here. Run `make engines`, or set VSKILL_CISCO to its program."
        )

    def command(self, tree: Path) -> Sequence[str]:
        """Return the command line; no option names an analyser that asks a model or another machine."""
        return [settings.CISCO, "scan", str(tree), "--format", "json", "--compact"]

    def parse(self, output: bytes) -> EngineResult:
        """Read its report: a finding for each of its own, and the status ``partial`` where an analyser failed."""
        report = json.loads(output)
        try:
            findings = strongest_first(_finding(item) for item in report["findings"])
            failed = _failed(report)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a report of cisco's scanner: {error!r}") from error
        return EngineResult(
            engine=self.name,
            engine_version=self.version,
            status=EngineStatus.PARTIAL if failed else EngineStatus.COMPLETE,
            findings=(*findings[:MAX_FINDINGS], *([_coverage(failed)] if failed else [])),
            error=f"cisco left parts of the skill unread: {failed}." if failed else "",
        )


def _failed(report: Mapping[str, Any]) -> str:
    """Return the names of the analysers that failed, '' where all ran."""
    failed = report.get("analyzers_failed") or (report.get("scan_metadata") or {}).get("analyzers_failed") or []
    names = [str(one.get("analyzer", one)) if isinstance(one, Mapping) else str(one) for one in failed]
    if not report["analyzers_used"]:
        names.append("all analysers")
    return visible(", ".join(names), 200)


def _finding(item: Mapping[str, Any]) -> Finding:
    line = item["line_number"]
    return Finding(
        rule_id=visible(str(item["rule_id"]), 120),
        severity=_SEVERITIES[str(item["severity"]).upper()],
        kind=FindingKind.RISK,
        title=str(item["title"]),
        file=str(item["file_path"] or ""),
        line=line if isinstance(line, int) and line > 0 else None,
        excerpt=str(item["snippet"] or ""),
        why=str(item["description"]),
        advice=str(item["remediation"] or ""),
        engine=Cisco.name,
    )


def _coverage(failed: str) -> Finding:
    return Finding(
        rule_id="coverage",
        severity=Severity.INFO,
        kind=FindingKind.COVERAGE,
        title="A part of the scanner failed",
        why=failed,
        advice="A person has to look, because this engine did not read everything.",
        engine=Cisco.name,
    )
