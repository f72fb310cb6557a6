"""Findings: one shape for the pre-scan, the linter and every engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from vskill.access_tokens.token_form import without_tokens
from vskill.hidden_characters import visible

MAX_EXCERPT = 240


class Severity(StrEnum):
    """How much harm a finding may mean, in ascending order."""

    INFO = "info"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """Return the position in this order: 0 for info, 4 for critical."""
        return _RANKS[self]


_RANKS = {severity: rank for rank, severity in enumerate(Severity)}


class FindingKind(StrEnum):
    """What kind of statement a finding makes, which decides what verdict it can lead to.

    ``format`` stops a package before any engine runs and accuses nobody. ``malicious`` is what an engine calls
    deliberate deception. ``risk`` is a dangerous construct, ``exposure`` a secret that the author leaked, ``coverage``
    a part that an engine did not read, ``lint`` a harmless deviation from the specification.
    """

    FORMAT = "format"
    MALICIOUS = "malicious"
    RISK = "risk"
    EXPOSURE = "exposure"
    COVERAGE = "coverage"
    LINT = "lint"


@dataclass(frozen=True)
class Finding:
    """One result of a check, with its place, why it matters and what to do about it.

    Every text is made safe to show when the finding is built (see ``visible``). It is still plain text, so a page must
    escape it for HTML. ``line`` counts from 1, None means the whole file; an empty ``file`` means the whole package.
    ``waived`` says why a reviewer accepts it and until when; empty where none does. What is waived holds nothing.
    """

    rule_id: str
    severity: Severity
    title: str
    file: str = ""
    line: int | None = None
    excerpt: str = ""
    why: str = ""
    advice: str = ""
    engine: str = "structure"
    kind: FindingKind = FindingKind.RISK
    waived: str = ""

    def __post_init__(self) -> None:
        """Make every text safe to show, so that no caller can forget to; an access token is never shown."""
        object.__setattr__(self, "excerpt", visible(without_tokens(self.excerpt), MAX_EXCERPT))
        for name in ("file", "title", "why", "advice", "waived"):
            object.__setattr__(self, name, visible(getattr(self, name)))

    def as_json(self) -> dict[str, Any]:
        """Return plain values for ``json.dumps``; ``from_json`` reads them back."""
        return {
            "ruleId": self.rule_id,
            "severity": self.severity.value,
            "kind": self.kind.value,
            "title": self.title,
            "file": self.file,
            "line": self.line,
            "excerpt": self.excerpt,
            "why": self.why,
            "advice": self.advice,
            "engine": self.engine,
            **({"waived": self.waived} if self.waived else {}),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Finding:
        """Rebuild a finding from ``as_json``; raises KeyError, TypeError or ValueError for anything else."""
        line = value["line"]
        return cls(
            rule_id=str(value["ruleId"]),
            severity=Severity(value["severity"]),
            kind=FindingKind(value["kind"]),
            waived=str(value.get("waived", "")),
            title=str(value["title"]),
            file=str(value["file"]),
            line=None if line is None else int(line),
            excerpt=str(value["excerpt"]),
            why=str(value["why"]),
            advice=str(value["advice"]),
            engine=str(value["engine"]),
        )


_KIND_ORDER = {kind: place for place, kind in enumerate(FindingKind)}


def strongest_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings without duplicates, most severe first, in a deterministic order."""
    unique = dict.fromkeys(findings)
    return tuple(
        sorted(
            unique,
            key=lambda f: (-f.severity.rank, _KIND_ORDER[f.kind], f.rule_id, f.file, f.line or 0, f.excerpt, f.title),
        )
    )
