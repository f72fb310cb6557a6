"""The rules that the layout of the code keeps, read from the files themselves."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.product_modules import FLOORS, ROOT, Module, modules

# The settings list the apps, and the root URL space includes theirs: Django reads both by name.
MAY_NAME_APPS = {"vskill.settings", "vskill.urls"}
# A module of 250 lines is asked whether it has two jobs; past 300 the answer is yes. A test module may list more cases.
LONGEST_MODULE = 300
LONGEST_TEST_MODULE = 400
# All that pip installs for us: to run, to develop, and into environments of their own.
REQUIREMENTS = (
    "requirements.txt",
    "requirements-dev.txt",
    "tests/bench/requirements.txt",
    "tests/mutants/requirements.txt",
    "requirements-engines/semgrep.txt",
    "requirements-engines/cisco.txt",
    "tests/clients/apm/requirements.txt",
)


@cache
def imported_names(module: Module) -> tuple[str, ...]:
    """Return the dotted name of each import, wherever in the file it stands, type checking included."""
    return tuple(_imported_names(module))


def _imported_names(module: Module) -> Iterator[str]:
    package = module.name if module.is_package else module.name.rpartition(".")[0]
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield inner if inner in modules() else base


def named_in_strings(module: Module) -> Iterator[str]:
    """Yield strings that name a module or model of ours, as import_module and ForeignKey take them."""
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        top, dot, rest = node.value.partition(".")
        if dot and top in FLOORS and re.fullmatch(r"\w+(\.\w+)*", rest):
            first = rest.split(".")[0]
            if f"{top}.{first}" in modules() or first[0].isupper():
                yield node.value


def floors_above(module: Module) -> tuple[str, ...]:
    return FLOORS[FLOORS.index(module.name.split(".")[0]) + 1 :]


@cache
def imports_within_project() -> dict[str, set[str]]:
    return {
        name: {target for target in imported_names(module) if target in modules() and target != name}
        for name, module in modules().items()
    }


def assert_no_cycle(graph: dict[str, set[str]]) -> None:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"an import cycle: {' <- '.join(error.args[1])}")


def test_every_floor_has_modules() -> None:
    assert {name.split(".")[0] for name in modules()} == set(FLOORS)


def test_imports_run_downwards() -> None:
    upwards = [
        f"{name} imports {target}"
        for name, module in modules().items()
        for target in imported_names(module)
        if target.split(".")[0] in floors_above(module)
    ]
    assert upwards == []


def test_no_module_reaches_upwards_by_a_name_in_a_string() -> None:
    upwards = [
        f"{name} names {target}"
        for name, module in modules().items()
        if name not in MAY_NAME_APPS
        for target in named_in_strings(module)
        if target.split(".")[0] in floors_above(module)
    ]
    assert upwards == []


def test_no_migration_depends_on_a_floor_above() -> None:
    upwards = [
        f"{name} depends on {node.value}"
        for name, module in modules().items()
        if ".migrations." in name
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and node.value in floors_above(module)
    ]
    assert upwards == []


def test_no_product_module_imports_the_tests() -> None:
    assert [
        name for name, module in modules().items() if "tests" in {t.split(".")[0] for t in imported_names(module)}
    ] == []


def test_modules_import_each_other_without_cycles() -> None:
    # An import inside a function hides a cycle from the interpreter; it does not remove it.
    assert_no_cycle(imports_within_project())


def room_of(name: str) -> str:
    """Return the room that a module lies in.

    A folder below a floor is a room with all that is in it, and so is each module that lies there directly; commands
    are a room apart from what they share in ``management``.
    """
    parts = name.split(".")
    return ".".join(parts[: 3 if parts[1:3] == ["management", "commands"] else 2])


def imports_between_rooms(floor: str) -> dict[str, set[str]]:
    graph: dict[str, set[str]] = {}
    for name, targets in imports_within_project().items():
        if name.split(".")[0] == floor:
            graph.setdefault(room_of(name), set()).update(map(room_of, targets))
    return {room: targets - {room} for room, targets in graph.items()}


@pytest.mark.parametrize("floor", FLOORS)
def test_rooms_import_each_other_without_cycles(floor: str) -> None:
    assert_no_cycle(imports_between_rooms(floor))


def reached_from(start: str, graph: dict[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph.get(waiting.pop(), set()) - reached
        reached |= new
        waiting += new
    return reached


def test_only_the_queue_knows_the_table_of_messages() -> None:
    # Others ask submissions.messages, so that a broker could take the place of the table.
    may = ("submissions.queue", "submissions.messages", "submissions.models", "submissions.migrations")
    strays = [
        name
        for name, module in modules().items()
        if re.search(r"\bQueueMessage\b", module.path.read_text(encoding="utf-8"))
        if not any(name == one or name.startswith(f"{one}.") for one in may)
    ]
    assert strays == []


def test_every_module_has_one_job() -> None:
    product = {module.path: LONGEST_MODULE for module in modules().values()}
    tests = {path: LONGEST_TEST_MODULE for path in (ROOT / "tests").rglob("*.py") if "node_modules" not in path.parts}
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in product | tests}
    limits = product | tests
    assert {str(path.relative_to(ROOT)): lines for path, lines in lengths.items() if lines > limits[path]} == {}, (
        "longer than a module with one job is"
    )


def requirements(file_name: str) -> set[str]:
    lines = (ROOT / file_name).read_text().splitlines()
    wanted = [line for line in lines if line and not line.startswith(("#", "-r "))]
    return {re.split(r"[\[=]", line)[0].lower() for line in wanted}


def documented() -> set[str]:
    """Return the names in backticks that start a table row of docs/dependencies.md."""
    return set(re.findall(r"^\| `([^`]+)`", (ROOT / "docs" / "dependencies.md").read_text(), re.MULTILINE))


def test_requirements_are_exact_versions() -> None:
    lines = [
        line
        for name in REQUIREMENTS
        for line in (ROOT / name).read_text().splitlines()
        if line and not line.startswith(("#", "-r "))
    ]
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+(\[[\w,]+\])?==[\w.]+", line)] == []


def test_the_product_imports_only_what_requirements_install() -> None:
    provided = packages_distributions()
    allowed = requirements("requirements.txt")
    foreign = {
        (target.split(".")[0], name)
        for name, module in modules().items()
        for target in imported_names(module)
        if target.split(".")[0] not in sys.stdlib_module_names | set(FLOORS)
    }
    strays = [
        f"{name} imports {top}"
        for top, name in sorted(foreign)
        if not {distribution.lower().replace("_", "-") for distribution in provided.get(top, [])} & allowed
    ]
    assert strays == [], "not in requirements.txt, so not there after `make run`"


def dependencies() -> set[str]:
    """Return what pip and npm install, whatever it is for."""
    clients = ROOT / "tests" / "clients"
    files = (clients / "package.json", *clients.glob("*/package.json"))
    npm = (json.loads(file.read_text())["dependencies"] for file in files)
    return set().union(*npm, *map(requirements, REQUIREMENTS))


def test_every_dependency_says_why_it_is_there() -> None:
    assert dependencies() - {name.lower() for name in documented()} == set(), "without a line in docs/dependencies.md"


def test_every_vendored_file_has_its_licence_recorded() -> None:
    vendored = {path.name for path in ROOT.glob("*/static/**/vendor/*") if path.suffix in {".js", ".css", ".woff2"}}
    assert vendored - documented() == set()


def test_no_line_is_left_of_a_dependency_that_went() -> None:
    files = (*ROOT.glob("*/static/**/vendor/*"), *ROOT.glob("tests/*/data/*"))
    known = dependencies() | {path.name for path in files}
    assert {name for name in documented() if name.lower() not in known and name not in known} == set()


@cache
def tracked_files() -> tuple[Path, ...]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, so no file is a tracked one")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    paths = [ROOT / name for name in listed.decode().split("\0") if name]
    return tuple(path for path in paths if path.is_file())


def files_that_hold(needle: str) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in tracked_files() if needle.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    "host",
    [
        # In pieces, so that this file is not one that names them.
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("yarnpkg", "com"),
        ("deb", "debian", "org"),
    ],
    ids="-".join,
)
def test_no_file_names_the_host_of_a_package_index(host: tuple[str, ...]) -> None:
    # Which index serves the packages is the choice of the machine that installs them.
    assert files_that_hold(".".join(host)) == []


@pytest.mark.parametrize("place", [ROOT, Path(sys.prefix), Path(sys.base_prefix)], ids=["checkout", "venv", "python"])
def test_no_file_holds_a_path_of_the_machine_it_was_written_on(place: Path) -> None:
    if len(place.parts) < 3 or place.is_relative_to("/usr"):
        pytest.skip(f"{place} is a path that any machine may have")
    assert files_that_hold(str(place)) == []
