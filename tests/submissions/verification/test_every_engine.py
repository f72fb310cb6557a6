"""What every engine has to keep, whatever it looks for; an engine that is registered is tried by itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from submissions.sandbox.child_processes import PreparedScript
from submissions.verification.engines import ENGINES, get_engines
from submissions.verification.engines.base import Engine, EngineResult, EngineStatus
from submissions.verification.errors import EngineUnavailable
from submissions.verification.findings import FindingKind, Severity
from submissions.verification.runner import run_engine
from tests.git_factory import skill_md

FILES = {
    "SKILL.md": skill_md(),
    "scripts/hello.py": 'print("hello")\n',
    "references/notes.md": "# Notes\n\nNothing to run.\n",
    "assets/empty.txt": "",
}


@pytest.fixture(params=sorted(ENGINES))
def engine(request: pytest.FixtureRequest) -> Engine:
    """Return each registered engine."""
    [made] = get_engines([request.param])
    try:
        assert made.version
    except EngineUnavailable as error:
        pytest.skip(str(error))
    return made


async def scan(engine: Engine, tree: Path) -> EngineResult:
    """Write an honest skill and scan it as the pipeline does."""
    for path, content in FILES.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(content, encoding="utf-8")
    return await run_engine(engine, tree)


async def test_an_honest_skill_is_scanned_completely_and_not_held(engine: Engine, tmp_path: Path) -> None:
    result = await scan(engine, tmp_path)
    assert (result.status, result.error) == (EngineStatus.COMPLETE, "")
    assert not result.blocked
    holding = (FindingKind.RISK, FindingKind.MALICIOUS)
    assert [one for one in result.findings if one.kind in holding and one.severity.rank >= Severity.HIGH.rank] == []


async def test_a_result_says_who_gave_it(engine: Engine, tmp_path: Path) -> None:
    result = await scan(engine, tmp_path)
    assert engine.version
    assert (result.engine, result.engine_version, result.adapter) == (engine.name, engine.version, engine.adapter)
    assert {finding.engine for finding in result.findings} <= {engine.name}


async def test_the_same_files_give_the_same_result_wherever_they_are(engine: Engine, tmp_path: Path) -> None:
    first = await scan(engine, tmp_path / "one")
    assert await scan(engine, tmp_path / "another") == first
    stored = json.dumps(first.as_json())
    assert EngineResult.from_json(json.loads(stored)) == first
    assert str(tmp_path) not in stored


def test_the_program_is_named_by_its_absolute_path(engine: Engine, tmp_path: Path) -> None:
    command = engine.command(tmp_path)
    program = command.path if isinstance(command, PreparedScript) else command[0]
    assert Path(program).is_absolute()
    assert Path(program).exists()


@pytest.mark.parametrize("output", [b"", b"[]", b"{}", b"null", b"\xff\xfe", b"[" * 100_000])
def test_output_that_is_no_result_raises_what_the_runner_catches(engine: Engine, output: bytes) -> None:
    with pytest.raises((ValueError, RecursionError)):
        engine.parse(output)
