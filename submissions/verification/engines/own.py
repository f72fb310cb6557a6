"""The adapter of our own engine, which parses a skill and follows values from source to sink."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from submissions.sandbox.child_processes import PreparedScript
from submissions.verification.contract import read_contract
from submissions.verification.engine import rules
from submissions.verification.engines.base import Engine, EngineResult, EngineStatus
from submissions.verification.findings import Finding, FindingKind, Severity, strongest_first

_SCRIPT = Path(__file__).with_name("own_child.py")


class OwnEngine(Engine):
    """Run our own engine, which takes about 0.01 s per skill."""

    name = "vskill"
    adapter = 2

    @property
    def version(self) -> str:
        """Return the version of the rules and of what reads for them."""
        return rules.VERSION

    def command(self, tree: Path) -> PreparedScript:
        """Return the call of the child script."""
        return PreparedScript(_SCRIPT, (str(tree),))

    def parse(self, output: bytes) -> EngineResult:
        """Read the document of the child: a finding for each sign, and the status ``partial`` for unread files."""
        document = json.loads(output)
        try:
            findings = strongest_first(_finding(item) for item in document["findings"])
            unread = [_unread(*one) for one in document["unread"]]
            capabilities = tuple(str(name) for name in document["capabilities"])
            contract = read_contract(document["contract"])
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a document of our engine: {error!r}") from error
        return EngineResult(
            engine=self.name,
            engine_version=self.version,
            status=EngineStatus.PARTIAL if unread else EngineStatus.COMPLETE,
            findings=(*findings, *_bounded(unread)),
            capabilities=capabilities,
            error=f"{self.name} left parts of the skill unread: {unread[0].file}." if unread else "",
            contract=contract,
        )


def _finding(item: Mapping[str, Any]) -> Finding:
    rule = rules.RULES[item["rule"]]
    origin = f" It was read out of: {item['origin']}." if item["origin"] else ""
    return Finding(
        rule_id=rule.id,
        severity=Severity(item["severity"]),
        kind=FindingKind(rule.kind),
        title=rule.title,
        file=str(item["file"]),
        line=int(item["line"]),
        excerpt=str(item["excerpt"]),
        why=rule.why + origin,
        advice=rule.advice,
        engine=OwnEngine.name,
    )


def _unread(file: str, why: str) -> Finding:
    return Finding(
        rule_id="coverage",
        severity=Severity.INFO,
        kind=FindingKind.COVERAGE,
        title="File not read",
        file=file,
        why=why,
        advice="A person has to look at this part, because this engine did not.",
        engine=OwnEngine.name,
    )


def _bounded(unread: Sequence[Finding]) -> Sequence[Finding]:
    """Return the notes about unread files; those beyond what people read become one that names no file."""
    if len(unread) <= rules.MOST_FINDINGS:
        return unread
    return (*unread[: rules.MOST_FINDINGS], _unread("", f"{len(unread) - rules.MOST_FINDINGS:,} more files."))
