"""Break the code in small ways, one at a time, and count how many of the breaks the tests notice.

``python -m tests.mutants [--module PATH ...] [--minutes N] [--jobs N] [--every]`` prints a table and the mutants that
survived, and writes build/mutants.json. Mutants are tried in an order that is drawn once and for all, so that a run
that is out of time, or is ended by Ctrl-C, has tried a fair sample. The tests run on SQLite, in copies of the project;
no file of it changes. Exit code 1: the tests fail without any mutant; 130: Ctrl-C.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from tests.mutants.rooms import ROOMS, ROOT
from tests.mutants.runs import Checkout, make_mutants

OUTPUT: Final = ROOT / "build" / "mutants.json"
KILLED: Final = "killed"
SURVIVED: Final = "survived"
NOT_RUN: Final = "not run"
# Seconds that the tests of one mutant may take; a mutant that makes them run for ever is noticed, too.
LONGEST: Final = 600.0


@dataclass
class Mutant:
    """One change of one module; ``outcome`` is killed, survived or not run."""

    module: str
    operator: str
    line: int
    text: str
    change: str
    outcome: str = NOT_RUN


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--module", nargs="+", default=[], metavar="PATH", help="modules or folders, not all of them")
    parser.add_argument("--minutes", type=float, default=240, help="stop after so many minutes (default %(default)g)")
    parser.add_argument("--jobs", type=int, default=2, help="mutants tried side by side (default %(default)d)")
    parser.add_argument("--every", action="store_true", help="try each replacement of an operator, and not one of them")
    options = parser.parse_args(arguments)
    ends_at = time.monotonic() + options.minutes * 60
    tests = {
        module: room.tests_of(module)
        for room in ROOMS
        for module in room.paths()
        if not options.module or any(Path(module).is_relative_to(wanted) for wanted in options.module)
    }
    if not tests:
        parser.error("no module of tests/mutants/rooms.py is below those that --module names")
    mutants = read_mutants(list(tests), every=options.every)
    code = 0
    try:
        attempt_all(mutants, tests, options.jobs, ends_at)
    except TestsFail as failure:
        print(failure, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        code = 130
    print(file=sys.stderr)
    OUTPUT.parent.mkdir(exist_ok=True)
    OUTPUT.write_text(json.dumps([{**asdict(mutant), "text": None} for mutant in mutants], indent=1))
    print(report(mutants))
    return code


class TestsFail(Exception):
    """Say which tests fail, or are too slow, before anything is mutated."""

    __test__ = False


def read_mutants(modules: Sequence[str], *, every: bool) -> list[Mutant]:
    """Return the mutants of some modules, in the order of their source."""
    mutants = []
    for module, found in make_mutants(modules, every=every).items():
        source = (ROOT / module).read_text(encoding="utf-8")
        mutants += [
            Mutant(module, one["operator"], one["line"], one["text"], change(source, one["text"])) for one in found
        ]
    return mutants


def attempt_all(mutants: Sequence[Mutant], tests: Mapping[str, Sequence[str]], jobs: int, ends_at: float) -> None:
    """Set the outcome of each mutant that is tried before ``ends_at``, by the monotonic clock.

    ``tests`` are the files of tests by module. Raises ``TestsFail`` where they fail without any mutant.
    """
    with ExitStack() as stack:
        checkouts: SimpleQueue[Checkout] = SimpleQueue()
        pool = stack.enter_context(ThreadPoolExecutor(jobs))
        stack.callback(pool.shutdown, wait=False, cancel_futures=True)
        first = stack.enter_context(closing(Checkout()))
        for checkout in (first, *(stack.enter_context(closing(Checkout())) for _ in range(jobs - 1))):
            checkouts.put(checkout)
        limits = {module: time_limit(first, module, files) for module, files in tests.items()}

        def attempt(mutant: Mutant) -> None:
            if time.monotonic() >= ends_at:
                return
            checkout = checkouts.get()
            try:
                passed = checkout.tests_pass(tests[mutant.module], limits[mutant.module], mutant.module, mutant.text)
            finally:
                checkouts.put(checkout)
            if checkout.closed:
                # The tests were ended and have not failed.
                return
            mutant.outcome = SURVIVED if passed else KILLED
            print("s" if passed else ".", end="", file=sys.stderr, flush=True)

        list(pool.map(attempt, sorted(mutants, key=_lot)))


def change(source: str, text: str) -> str:
    """Return the lines that a mutant changes, before and after."""
    lines = difflib.unified_diff(source.splitlines(), text.splitlines(), n=0, lineterm="")
    kept = [line for line in list(lines)[2:] if line[0] in "+-" and line[1:].strip()]
    return "\n".join(f"{line[0]} {line[1:].strip()}" for line in kept)


def time_limit(checkout: Checkout, module: str, tests: Sequence[str]) -> float:
    """Return how many seconds the tests of a mutant may take: five times what they take without it, 60 to 600.

    Raises ``TestsFail`` where they fail without it.
    """
    began_at = time.monotonic()
    if not checkout.tests_pass(tests, LONGEST):
        raise TestsFail(f"The tests of {module} fail without any mutant; nothing was measured: {' '.join(tests)}")
    return min(LONGEST, max(60.0, 5 * (time.monotonic() - began_at)))


def report(mutants: Sequence[Mutant]) -> str:
    """Return the table of modules with their sum, and below it the mutants that survived."""
    modules = sorted({mutant.module for mutant in mutants})
    width = max(map(len, [*modules, "module"]))
    lines = [f"{'module':{width}}  mutants  killed  survived  not run  score"]
    rows = [(module, [mutant for mutant in mutants if mutant.module == module]) for module in modules]
    for name, group in [*rows, ("sum", list(mutants))]:
        counts = [sum(one.outcome == outcome for one in group) for outcome in (KILLED, SURVIVED, NOT_RUN)]
        tried = counts[0] + counts[1]
        score = f"{100 * counts[0] / tried:4.0f} %" if tried else "     -"
        lines.append(f"{name:{width}}  {len(group):7}  {counts[0]:6}  {counts[1]:8}  {counts[2]:7} {score}")
    survivors = [one for one in mutants if one.outcome == SURVIVED]
    for one in sorted(survivors, key=lambda one: (one.module, one.line)):
        lines += [
            "",
            f"{one.module}:{one.line} survived {one.operator}",
            *(f"    {line}" for line in one.change.splitlines()),
        ]
    return "\n".join(lines)


def _lot(mutant: Mutant) -> str:
    return hashlib.sha256(f"{mutant.module}\n{mutant.line}\n{mutant.operator}\n{mutant.change}".encode()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
