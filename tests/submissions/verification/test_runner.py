"""Whatever an engine does in its child process, a result is returned and nothing is left behind."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from submissions.verification.engines.base import Engine, EngineResult, EngineStatus
from submissions.verification.errors import EngineUnavailable
from submissions.verification.runner import EngineLimits, measure_engine, run_engine

MIB = 1024 * 1024
QUICK = EngineLimits(seconds=20, cpu_seconds=10, address_space=256 * MIB, output_bytes=10_000, file_bytes=100_000)
SHORT = EngineLimits(seconds=1, cpu_seconds=10, address_space=256 * MIB)


class ScriptEngine(Engine):
    """An engine that runs a piece of Python and returns the words that it prints as capabilities."""

    name = "script"

    def __init__(self, code: str) -> None:
        """Keep the code; it finds the tree in ``sys.argv[1]``."""
        self.code = code

    @property
    def version(self) -> str:
        """Return a version."""
        return "1"

    def command(self, tree: Path) -> Sequence[str]:
        """Return the call of the interpreter."""
        return [sys.executable, "-I", "-c", self.code, str(tree)]

    def parse(self, output: bytes) -> EngineResult:
        """Read a JSON list of words."""
        words = json.loads(output)
        if not isinstance(words, list):
            raise ValueError("not a list")
        return EngineResult(self.name, "1", EngineStatus.COMPLETE, capabilities=tuple(words))


async def run(code: str, tree: Path, limits: EngineLimits = QUICK) -> EngineResult:
    return await run_engine(ScriptEngine(code), tree, limits)


def read_until_nobody_writes(fifo: Path) -> bytes:
    """Return what was written, once no process has the pipe open."""
    return fifo.read_bytes()


def make_fifo(tmp_path: Path) -> Path:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    return fifo


async def test_what_an_engine_prints_is_its_result(tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text("x")
    code = "import json, os, sys; print(json.dumps(os.listdir(sys.argv[1])))"
    assert await run(code, tmp_path) == EngineResult("script", "1", EngineStatus.COMPLETE, capabilities=("SKILL.md",))


@pytest.mark.parametrize(
    ("code", "words"),
    [
        pytest.param("while True: print('x' * 9999)", "printed more than 10,000 bytes", id="floods stdout"),
        pytest.param("x = bytearray(2**32)", "MemoryError", id="allocates at once"),
        pytest.param("x = [bytearray(2**20) for _ in range(5000)]", "MemoryError", id="allocates bit by bit"),
        pytest.param("import os; os.kill(os.getpid(), 11)", "was ended by SIGSEGV", id="crashes"),
        pytest.param("import os; os.abort()", "was ended by SIGABRT", id="aborts"),
        pytest.param("raise SystemExit(3)", "ended with status 3: no reason given", id="exits"),
        pytest.param("1 / 0", "ZeroDivisionError", id="raises"),
        pytest.param("", "cannot be read", id="prints nothing"),
        pytest.param("print('{')", "cannot be read", id="prints half a document"),
        pytest.param("print('{}')", "not a list", id="prints another document"),
        pytest.param("print('[' * 9000)", "cannot be read", id="prints a deeply nested document"),
        pytest.param(
            "f = open('big', 'wb', buffering=0)\nwhile f.write(bytes(9999)): pass",
            "File too large",
            id="fills the disk",
        ),
        pytest.param("f = [open('/dev/null') for _ in range(999)]", "Too many open files", id="opens everything"),
    ],
)
async def test_trouble_of_an_engine_is_a_failed_result(tmp_path: Path, code: str, words: str) -> None:
    result = await run(code, tmp_path)
    assert result.status is EngineStatus.FAILED
    assert words in result.error
    assert result.findings == ()


async def test_a_flood_on_stderr_is_cut_and_harms_nobody(tmp_path: Path) -> None:
    code = "import sys; sys.stderr.write('x' * 5_000_000); print('[\"ok\"]')"
    assert (await run(code, tmp_path)).capabilities == ("ok",)


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("import time; time.sleep(600)", id="sleeps"),
        pytest.param(
            "import signal, time\nfor s in (1, 2, 15): signal.signal(s, signal.SIG_IGN)\ntime.sleep(600)",
            id="ignores every signal it can",
        ),
        pytest.param("import os, time; os.close(1); os.close(2); time.sleep(600)", id="closes its output"),
    ],
)
async def test_an_engine_that_does_not_end_is_ended(tmp_path: Path, code: str) -> None:
    result = await run(code, tmp_path, SHORT)
    assert result.status is EngineStatus.TIMED_OUT
    assert result.error == "script did not finish within 1 seconds."


async def test_processor_time_is_limited_apart_from_time(tmp_path: Path) -> None:
    limits = EngineLimits(seconds=60, cpu_seconds=1)
    result = await run("while True: pass", tmp_path, limits)
    assert result.status is EngineStatus.TIMED_OUT
    assert "more than 1 seconds of processor time" in result.error


@pytest.mark.parametrize("ending", ["print('[]', flush=True)", "time.sleep(600)"])
async def test_what_an_engine_forked_ends_with_it(tmp_path: Path, ending: str) -> None:
    fifo = make_fifo(tmp_path)
    code = (
        "import os, sys, time\n"
        f"held = os.open({str(fifo)!r}, os.O_WRONLY)\n"
        "for _ in range(5):\n"
        "    if os.fork() == 0:\n"
        "        os.close(1); os.close(2); time.sleep(600); os._exit(0)\n"
        "os.write(held, b'forked')\n"
        f"{ending}"
    )
    _, written = await asyncio.gather(run(code, tmp_path, SHORT), asyncio.to_thread(read_until_nobody_writes, fifo))
    assert written == b"forked"


async def test_a_descendant_that_keeps_the_output_open_does_not_hold_up_the_result(tmp_path: Path) -> None:
    fifo = make_fifo(tmp_path)
    code = (
        "import os, sys\n"
        "seen, left = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    os.setsid(); os.write(left, b'x')\n"
        f"    open({str(fifo)!r}).read(); os._exit(0)\n"
        # Until then it would be killed with the others of the group.
        "os.read(seen, 1)\n"
        "print('[\"done\"]', flush=True)"
    )
    result = await run(code, tmp_path)
    # Ends the descendant, which left the process group.
    os.close(os.open(fifo, os.O_WRONLY))
    assert result.capabilities == ("done",)


async def test_a_cancelled_run_leaves_no_child_behind(tmp_path: Path) -> None:
    fifo = make_fifo(tmp_path)
    code = f"import os, time\nheld = os.open({str(fifo)!r}, os.O_WRONLY)\nos.write(held, b'up')\ntime.sleep(600)"
    running = asyncio.create_task(run(code, tmp_path))
    reader = await asyncio.to_thread(os.open, fifo, os.O_RDONLY)
    try:
        assert await asyncio.to_thread(os.read, reader, 2) == b"up"
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert await asyncio.to_thread(os.read, reader, 2) == b""
    finally:
        os.close(reader)


def test_a_child_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    fifo = make_fifo(tmp_path)
    code = f"import os, time\nheld = os.open({str(fifo)!r}, os.O_WRONLY)\nos.write(held, b'up')\ntime.sleep(600)"
    parent = (
        "import asyncio, sys\nfrom pathlib import Path\n"
        "from submissions.sandbox.child_processes import ChildLimits, run_child\n"
        f"asyncio.run(run_child([sys.executable, '-c', {code!r}], env={{}}, cwd=Path({str(tmp_path)!r}),"
        " limits=ChildLimits(seconds=600, output_bytes=1)))"
    )
    with subprocess.Popen([sys.executable, "-c", parent], cwd=Path(__file__).parents[3]) as process:
        reader = os.open(fifo, os.O_RDONLY)
        try:
            assert os.read(reader, 2) == b"up"
            process.kill()
            process.wait()
            assert os.read(reader, 2) == b""
        finally:
            os.close(reader)


async def test_an_engine_sees_no_secret_and_works_in_a_folder_that_goes_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VSKILL_SECRET_KEY", "hunter2")
    monkeypatch.setenv("DATABASE_URL", "postgres://user:hunter2@db/x")
    code = (
        "import json, os; open('left', 'w').close()\n"
        "print(json.dumps([os.getcwd(), *os.environ, *os.environ.values()]))"
    )
    words = (await run(code, tmp_path)).capabilities
    assert not any("hunter2" in word for word in words)
    assert not set(words) & {"VSKILL_SECRET_KEY", "DATABASE_URL"}
    assert not os.path.exists(words[0])  # noqa: PTH110, ASYNC240 - a string from a child, one look


def can_make_a_network_namespace() -> bool:
    return (
        subprocess.run(["unshare", "--net", "--map-root-user", "true"], check=False, capture_output=True).returncode
        == 0
    )


async def test_an_engine_has_no_network_where_the_kernel_can_take_it_away(tmp_path: Path) -> None:
    if not can_make_a_network_namespace():
        pytest.skip("this kernel does not let us make a network namespace")
    code = (
        "import json, socket\n"
        "try:\n    socket.create_connection(('127.0.0.1', 9), timeout=5); print('[\"connected\"]')\n"
        "except OSError as error:\n    print(json.dumps([error.strerror]))"
    )
    assert (await run(code, tmp_path)).capabilities == ("Network is unreachable",)


async def test_an_engine_that_is_not_installed_is_a_failed_result(tmp_path: Path) -> None:
    class Absent(ScriptEngine):
        @property
        def version(self) -> str:
            raise EngineUnavailable("script is not installed.")

    class WithoutProgram(ScriptEngine):
        def command(self, tree: Path) -> Sequence[str]:
            return [str(tree / "absent")]

    for engine, words in ((Absent(""), "not installed"), (WithoutProgram(""), "No such file")):
        result = await run_engine(engine, tmp_path, QUICK)
        assert result.status is EngineStatus.FAILED
        assert words in result.error


async def test_many_engines_run_at_once_and_each_gets_its_own_answer(tmp_path: Path) -> None:
    results = await asyncio.gather(*(run(f"print('[\"{n}\"]')", tmp_path) for n in range(20)))
    assert [result.capabilities for result in results] == [(str(n),) for n in range(20)]


async def test_what_a_run_costs_is_told_beside_its_result_and_is_no_part_of_it(tmp_path: Path) -> None:
    code = "import time\nwhile time.process_time() < 0.2: pass\nprint('[]')"
    run = await measure_engine(ScriptEngine(code), tmp_path, QUICK)
    assert run.result == await run_engine(ScriptEngine(code), tmp_path, QUICK)
    assert run.cpu_seconds >= 0.2
