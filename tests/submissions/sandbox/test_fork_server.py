"""Children come from one prepared parent, and share nothing with it, with one another or with this process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from submissions.sandbox.child_processes import ChildLimits, ChildOutcome, ChildResult, PreparedScript, run_child
from submissions.sandbox.fork_server import script_server

LIMITS = ChildLimits(seconds=30, output_bytes=100_000)
SCRIPT = """
import json, os, sys
IMPORTED_BY = os.getpid()
calls = []

def main(arguments):
    calls.append(arguments)
    result = eval(arguments[0])
    if isinstance(result, int) and not isinstance(result, bool):
        return result
    print(json.dumps(result))
"""


def write(path: Path, content: str) -> None:
    path.write_text(content)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "prepared.py"
    path.write_text(SCRIPT)
    return path


async def call(script: Path, expression: str, limits: ChildLimits = LIMITS, home: str = "") -> ChildResult:
    return await run_child(PreparedScript(script, (expression,)), env={"HOME": home}, cwd=script.parent, limits=limits)


async def answer(script: Path, expression: str, home: str = "") -> object:
    result = await call(script, expression, home=home)
    assert result.ok, result.stderr.decode()
    return json.loads(result.stdout)


async def test_a_script_is_imported_once_and_each_call_starts_from_there(script: Path) -> None:
    found = [await answer(script, "[IMPORTED_BY, os.getpid(), len(calls)]") for _ in range(3)]
    imported_by, own, calls = zip(*found, strict=True)
    assert len(set(imported_by)) == 1
    assert len({*own, *imported_by, os.getpid()}) == 5
    assert calls == (1, 1, 1)


async def test_a_child_has_the_environment_and_folder_it_was_given_and_no_more(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VSKILL_SECRET_KEY", "hunter2")
    assert await answer(script, "[dict(os.environ), os.getcwd()]", home="/x") == [{"HOME": "/x"}, str(script.parent)]


async def test_a_child_holds_no_descriptor_but_its_three(script: Path) -> None:
    # Through the socket of the server it could have children started without limits.
    assert await answer(script, "[fd for fd in range(200) if os.path.exists(f'/proc/self/fd/{fd}')]") == [0, 1, 2]
    program = [sys.executable, "-I", "-c", "import os; print(os.listdir('/proc/self/fd'))"]
    result = await run_child(program, env={}, cwd=script.parent, limits=LIMITS)
    # The fourth is the folder that is being listed.
    assert result.stdout.split() == [b"['0',", b"'1',", b"'2',", b"'3']"]


async def test_sets_have_the_same_order_in_every_call_and_server(script: Path) -> None:
    expression = "list({str(number) for number in range(50)})"
    first = await answer(script, expression)
    script_server.close()
    assert await answer(script, expression) == first


@pytest.mark.parametrize(
    ("expression", "status", "said"),
    [
        pytest.param("3", 3, "", id="returns a status"),
        pytest.param("sys.exit(4)", 4, "", id="exits"),
        pytest.param("sys.exit('no')", 1, "no", id="exits with a word"),
        pytest.param("sys.exit()", 0, "", id="exits well"),
        pytest.param("1 / 0", 1, "ZeroDivisionError", id="raises"),
        pytest.param("os.kill(os.getpid(), 11)", -signal.SIGSEGV, "", id="crashes"),
    ],
)
async def test_a_script_ends_as_a_program_would(script: Path, expression: str, status: int, said: str) -> None:
    result = await call(script, expression)
    assert (result.outcome, result.returncode) == (ChildOutcome.EXITED, status)
    assert said in result.stderr.decode()


async def test_a_script_that_cannot_be_imported_says_so_and_is_read_again(script: Path) -> None:
    write(script, "import absent_module")
    result = await call(script, "0")
    assert result.returncode == 1
    assert b"No module named 'absent_module'" in result.stderr
    write(script, SCRIPT)
    assert (await call(script, "0")).ok


async def test_limits_bind_a_prepared_child(script: Path) -> None:
    limits = ChildLimits(seconds=30, output_bytes=1000, address_space=300 * 2**20, cpu_seconds=1, file_bytes=10)
    assert b"MemoryError" in (await call(script, "len(bytearray(2**30))", limits)).stderr
    assert (await call(script, "any(iter(int, 1))", limits)).returncode == -signal.SIGXCPU
    assert (await call(script, "'x' * 2000", limits)).outcome is ChildOutcome.FLOODED
    assert (
        b"File too large" in (await call(script, "open('f', 'wb', 0).write(bytes(20)) - 10", limits)).stderr
        or (script.parent / "f").stat().st_size == 10
    )


async def test_what_is_written_to_a_child_arrives_whole(script: Path) -> None:
    content = os.urandom(3_000_000)
    program = [sys.executable, "-I", "-c", "import sys; d = sys.stdin.buffer.read(); print(len(d), d[-9:].hex())"]
    result = await run_child(program, env={}, cwd=script.parent, limits=LIMITS, stdin=content)
    assert result.stdout.split() == [b"3000000", content[-9:].hex().encode()]


async def test_a_child_that_does_not_read_harms_nobody(script: Path) -> None:
    result = await run_child(["/bin/true"], env={}, cwd=script.parent, limits=LIMITS, stdin=bytes(3_000_000))
    assert result.ok


def server_pid() -> int:
    process = script_server._process
    assert process is not None
    return process.pid


async def test_a_server_that_was_killed_is_replaced(script: Path) -> None:
    await answer(script, "0 == 0")
    killed = server_pid()
    kill_and_wait(killed)
    assert await answer(script, "1 == 1") is True
    assert server_pid() != killed


async def test_children_of_a_killed_server_end_as_killed(script: Path) -> None:
    fifo = script.parent / "fifo"
    os.mkfifo(fifo)
    running = asyncio.create_task(call(script, f"[open({str(fifo)!r}, 'w').close(), __import__('time').sleep(600)]"))
    with await asyncio.to_thread(fifo.open) as opened:
        await asyncio.to_thread(opened.read)
    os.kill(server_pid(), signal.SIGKILL)
    assert (await running).returncode == -signal.SIGKILL


async def test_a_child_that_cannot_be_started_is_an_error_of_the_machine(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script_server.close()
    # Counted for one user; the superuser of a container is never refused, so the fork itself is made to fail.
    failing = script.parent / "sitecustomize.py"
    failing.write_text("import os\ndef fork():\n    raise OSError(11, 'no')\nos.fork = fork\n")
    root = str(Path(__file__).parents[3])
    environment = {"PYTHONPATH": f"{failing.parent}:{root}"}
    monkeypatch.setattr("submissions.sandbox.fork_server._ENVIRONMENT", environment)
    try:
        with pytest.raises(BlockingIOError):
            await call(script, "0")
    finally:
        script_server.close()


def wait_for_zombie(pid: int) -> None:
    while "(zombie)" not in Path(f"/proc/{pid}/status").read_text():
        os.sched_yield()


def kill_and_wait(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def children_of_the_server() -> list[str]:
    pid = server_pid()
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


@pytest.mark.parametrize("steps", range(8))
async def test_a_cancelled_call_kills_its_child_wherever_it_was(script: Path, steps: int) -> None:
    running = asyncio.create_task(call(script, "__import__('time').sleep(600)"))
    for _ in range(steps):
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    if script_server._process is not None:
        assert children_of_the_server() == []


async def test_a_child_that_ends_while_its_call_is_given_up_ends_nothing_else(script: Path) -> None:
    folder = script.parent
    for name in ("pid", "go", "import"):
        os.mkfifo(folder / name)
    # It says its number, and ends when it is told to.
    steps = f"open({str(folder / 'pid')!r}, 'w').write(str(os.getpid())), open({str(folder / 'go')!r}).read()"
    running = asyncio.create_task(call(script, f"[{steps}] and 0"))
    child = int(await asyncio.to_thread((folder / "pid").read_text))
    server = server_pid()
    # Meanwhile the server imports, so that it learns of both at once: first of the end, then that nobody waits.
    slow = folder / "slow.py"
    slow.write_text(f"open({str(folder / 'import')!r}).read()\ndef main(arguments):\n    print('null')\n")
    imported = asyncio.create_task(answer(slow, ""))
    held = await asyncio.to_thread((folder / "import").open, "w")
    await asyncio.to_thread((folder / "go").write_text, "")
    await asyncio.to_thread(wait_for_zombie, child)
    running.cancel()
    # As far as it gets without the server.
    for _ in range(20):
        await asyncio.sleep(0)
    held.close()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await imported is None
    assert await answer(script, "1 == 1") is True
    assert server_pid() == server


def test_loops_of_several_threads_share_one_server(script: Path) -> None:
    async def some() -> list[object]:
        return list(await asyncio.gather(*(answer(script, f"[{n}, os.getppid()]") for n in range(10))))

    with ThreadPoolExecutor(4) as threads:
        found = [pair for result in threads.map(lambda _n: asyncio.run(some()), range(4)) for pair in result]
    assert sorted(pair[0] for pair in found) == sorted([*range(10)] * 4)  # type: ignore[index]
    assert {pair[1] for pair in found} == {server_pid()}  # type: ignore[index]


async def test_the_time_of_the_processor_is_that_of_the_child_and_of_what_it_waited_for(tmp_path: Path) -> None:
    busy = "import time\nwhile time.process_time() < 0.2: pass\n"
    own = await run_child([sys.executable, "-I", "-c", busy], env={}, cwd=tmp_path, limits=LIMITS)
    waits = f"import subprocess, sys; subprocess.run([sys.executable, '-I', '-c', {busy!r}], check=True)"
    of_child = await run_child([sys.executable, "-I", "-c", waits], env={}, cwd=tmp_path, limits=LIMITS)
    idle = await run_child(["/bin/true"], env={}, cwd=tmp_path, limits=LIMITS)
    assert (own.returncode, of_child.returncode, idle.returncode) == (0, 0, 0)
    assert own.cpu_seconds >= 0.2
    assert of_child.cpu_seconds >= 0.2
    assert idle.cpu_seconds < 0.2


async def test_a_child_that_was_killed_has_its_time_as_well(tmp_path: Path) -> None:
    busy = "import os, signal, time\nwhile time.process_time() < 0.2: pass\nos.kill(os.getpid(), signal.SIGKILL)\n"
    killed = await run_child([sys.executable, "-I", "-c", busy], env={}, cwd=tmp_path, limits=LIMITS)
    assert killed.returncode == -signal.SIGKILL
    assert killed.cpu_seconds >= 0.2
