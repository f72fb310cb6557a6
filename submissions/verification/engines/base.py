"""The interface between verification and the scanners that it runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Final

from submissions.sandbox.child_processes import PreparedScript
from submissions.verification.contract import read_contract
from submissions.verification.findings import Finding


class EngineStatus(StrEnum):
    """How far an engine got; only ``complete`` allows a package to pass.

    ``partial`` means that it left a part of the package unread, ``failed`` that it gave no usable answer, and
    ``timed_out`` that it was killed.
    """

    COMPLETE = "complete"
    PARTIAL = "partial"
    FAILED = "failed"
    TIMED_OUT = "timed_out"


# Nothing is learnt from these: the engine has to run again.
UNFINISHED: Final = (EngineStatus.FAILED, EngineStatus.TIMED_OUT)


@dataclass(frozen=True)
class EngineResult:
    """The result of one engine for one package.

    ``blocked`` says that the engine's own threshold for refusing an installation was reached, and ``reasons`` say why
    in its words. ``capabilities`` name what the skill can do; they are no findings. ``error`` is a sentence when
    ``status`` is not ``complete``. ``adapter`` is the version of our adapter, see ``Engine``. A result that is
    ``partial`` has a finding of the kind ``coverage`` for each part that was left unread, which names one file or none.
    ``contract`` is what the skill declares beside what it does and refers to (see ``read_contract``); None where the
    engine does not say, or where an earlier release stored the result.
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
    contract: Mapping[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return plain values for ``json.dumps``; ``from_json`` reads them back."""
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
            **({"contract": dict(self.contract)} if self.contract is not None else {}),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> EngineResult:
        """Rebuild a result from ``as_json``; raises KeyError, TypeError or ValueError for anything else."""
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
            contract=None if (contract := value.get("contract")) is None else read_contract(contract),
        )


def contract_in(results: Iterable[EngineResult]) -> Mapping[str, Any] | None:
    """Return what the skill declares beside what it does, or ``None`` where no engine has said it."""
    return next((one.contract for one in results if one.contract is not None), None)


class Engine(ABC):
    """The adapter of one scanner, which runs as a program in a child process.

    Raise ``adapter`` with every change of how the scanner is called or its output is read. Stored results with
    another ``adapter`` are not used again.
    """

    name: ClassVar[str]
    adapter: ClassVar[int] = 1
    network: ClassVar[bool] = False
    """Whether its child may use the network; only an engine that asks another machine has it."""

    def environment(self) -> Mapping[str, str]:
        """Return environment variables that its child gets besides the usual ones."""
        return {}

    @property
    @abstractmethod
    def version(self) -> str:
        """Return the installed version of the scanner, which results are keyed by; raises EngineUnavailable."""

    @abstractmethod
    def command(self, tree: Path) -> Sequence[str] | PreparedScript:
        """Return what scans the folder ``tree``: a prepared script, or a command line; see ``run_child``."""

    @abstractmethod
    def parse(self, output: bytes) -> EngineResult:
        """Read the output of a run that exited with status 0; raises ValueError when it is not a result."""
