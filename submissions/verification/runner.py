"""Run one engine on one package in a child process, and return a result whatever the engine does."""

from __future__ import annotations

import os
import signal
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from submissions.sandbox.child_processes import ChildLimits, ChildOutcome, ChildResult, run_child
from submissions.verification.engines.base import Engine, EngineResult, EngineStatus
from submissions.verification.errors import EngineUnavailable
from vskill.hidden_characters import visible
from vskill.processes.machine_faults import MachineFault, fault_of_child, machine_fault

_GIB = 1024 * 1024 * 1024
_MIB = 1024 * 1024


@dataclass(frozen=True)
class EngineLimits:
    """The limits of one run of an engine, as in ``ChildLimits``: seconds and bytes."""

    seconds: float = 90
    cpu_seconds: int = 60
    address_space: int = _GIB * 3 // 2
    output_bytes: int = 8 * _MIB
    file_bytes: int = 16 * _MIB


@dataclass(frozen=True)
class EngineRun:
    """The result of an engine, and the seconds of the processor that its child process used."""

    result: EngineResult
    cpu_seconds: float = 0.0


async def run_engine(engine: Engine, tree: Path, limits: EngineLimits | None = None) -> EngineResult:
    """Scan the folder ``tree`` (an absolute path) and return the engine's result, or a ``failed`` or ``timed_out`` one.

    Does not raise for a failure of the engine. The child gets no secrets, a scratch folder as its home and working
    directory, and no network where the kernel permits that. Its process group is killed when this task is cancelled.
    """
    return (await measure_engine(engine, tree, limits)).result


async def measure_engine(engine: Engine, tree: Path, limits: EngineLimits | None = None) -> EngineRun:
    """Do what ``run_engine`` does, and return what the run cost beside its result."""
    limits = limits or EngineLimits()
    try:
        version = engine.version
    except EngineUnavailable as error:
        return EngineRun(EngineResult(engine.name, "", EngineStatus.FAILED, error=str(error)))
    try:
        result = await _run(engine, tree, limits)
    except OSError as error:
        if (fault := machine_fault(error)) is not None:
            raise MachineFault(f"{engine.name} could not be started: {fault}") from error
        return EngineRun(
            _failed_result(engine, version, EngineStatus.FAILED, f"could not be started: {error.strerror}")
        )
    return EngineRun(_read(engine, version, result, limits), result.cpu_seconds)


def _read(engine: Engine, version: str, result: ChildResult, limits: EngineLimits) -> EngineResult:
    problem = _failure(result, limits)
    if problem is not None:
        timed_out = result.outcome is ChildOutcome.TIMED_OUT or result.returncode == -signal.SIGXCPU
        status = EngineStatus.TIMED_OUT if timed_out else EngineStatus.FAILED
        return _failed_result(engine, version, status, problem)
    try:
        return replace(engine.parse(result.stdout), adapter=engine.adapter)
    except (ValueError, RecursionError) as error:
        return _failed_result(engine, version, EngineStatus.FAILED, f"gave an answer that cannot be read: {error}")


async def _run(engine: Engine, tree: Path, limits: EngineLimits) -> ChildResult:
    with tempfile.TemporaryDirectory(prefix="vskill-engine-") as scratch:
        env = {
            "PATH": os.defpath,
            "HOME": scratch,
            "TMPDIR": scratch,
            "LANG": "C.UTF-8",
            "PYTHONUTF8": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            # A fixed order of sets, because the same content must give the same result.
            "PYTHONHASHSEED": "0",
            **engine.environment(),
        }
        child_limits = ChildLimits(
            seconds=limits.seconds,
            output_bytes=limits.output_bytes,
            address_space=limits.address_space,
            cpu_seconds=limits.cpu_seconds,
            file_bytes=limits.file_bytes,
            network=engine.network,
        )
        return await run_child(engine.command(tree), env=env, cwd=Path(scratch), limits=child_limits)


def _failure(result: ChildResult, limits: EngineLimits) -> str | None:
    if result.outcome is ChildOutcome.TIMED_OUT:
        return f"did not finish within {limits.seconds:g} seconds"
    if result.outcome is ChildOutcome.FLOODED:
        return f"printed more than {limits.output_bytes:,} bytes"
    if result.returncode == -signal.SIGXCPU:
        return f"used more than {limits.cpu_seconds} seconds of processor time"
    if result.returncode < 0:
        return f"was ended by {signal.Signals(-result.returncode).name}"
    if result.returncode > 0:
        if (fault := fault_of_child(result.stderr)) is not None:
            raise MachineFault(f"an engine could not work: {visible(fault, 200)}")
        lines = result.stderr.decode("utf-8", "replace").strip().splitlines()
        return f"ended with status {result.returncode}: {visible(lines[-1] if lines else 'no reason given', 200)}"
    return None


def _failed_result(engine: Engine, version: str, status: EngineStatus, problem: str) -> EngineResult:
    return EngineResult(engine.name, version, status, error=visible(f"{engine.name} {problem}."))
