"""The seam between verification and the scanners it uses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar

from submissions.verification.findings import Finding


class EngineStatus(StrEnum):
    """How far an engine came; only ``complete`` vouches for anything.

    ``partial`` means it left a part of the package unread, ``failed`` that it gave no usable answer, ``timed_out``
    that it was stopped.
    """

    COMPLETE = "complete"
    PARTIAL = "partial"
    FAILED = "failed"
    TIMED_OUT = "timed_out"


@dataclass(frozen=True)
class EngineResult:
    """What one engine said about one package.

    ``blocked`` tells whether the engine's own threshold for stopping an installation was reached, and ``reasons`` say
    why in its words. ``adapter`` is the version of our side of the engine, see ``Engine``. ``capabilities`` are names
    of what the skill can do; they accuse nobody. ``error`` is a sentence when the status is not ``complete``.
    """

    engine: str
    engine_version: str
    status: EngineStatus
    findings: tuple[Finding, ...] = ()
    capabilities: tuple[str, ...] = ()
    blocked: bool = False
    reasons: tuple[str, ...] = ()
    error: str = ""
    adapter: int = 1

    def as_json(self) -> dict[str, Any]:
        """Return plain values that ``json.dumps`` accepts; ``from_json`` reads them back."""
        return {
            "engine": self.engine,
            "engineVersion": self.engine_version,
            "status": self.status.value,
            "findings": [finding.as_json() for finding in self.findings],
            "capabilities": list(self.capabilities),
            "blocked": self.blocked,
            "reasons": list(self.reasons),
            "error": self.error,
            "adapter": self.adapter,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> EngineResult:
        """Rebuild a result from ``as_json``; raises KeyError or ValueError for anything else."""
        return cls(
            engine=str(value["engine"]),
            engine_version=str(value["engineVersion"]),
            status=EngineStatus(value["status"]),
            findings=tuple(Finding.from_json(item) for item in value["findings"]),
            capabilities=tuple(str(item) for item in value["capabilities"]),
            blocked=bool(value["blocked"]),
            reasons=tuple(str(item) for item in value["reasons"]),
            error=str(value["error"]),
            adapter=int(value["adapter"]),
        )


class Engine(ABC):
    """One scanner. It never runs in our process: it names a program, and reads what that program printed.

    ``adapter`` is raised with every change of how the scanner is called or its answer is read, so that results from
    before do not count any more.
    """

    name: ClassVar[str]
    adapter: ClassVar[int] = 1

    @property
    @abstractmethod
    def version(self) -> str:
        """Return the version of the scanner as installed; results are keyed by it. Raises EngineUnavailable."""

    @abstractmethod
    def command(self, tree: Path) -> Sequence[str]:
        """Return the program (an absolute path) and the arguments that scan ``tree`` and print the answer."""

    @abstractmethod
    def parse(self, output: bytes) -> EngineResult:
        """Return the result that a successful run printed; raises ValueError when it is none."""
