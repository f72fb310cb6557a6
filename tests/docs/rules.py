"""How each kind of example is checked without running it: blocks by their language, commands by their program."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable
from typing import Any, Final
from unittest.mock import patch

import yaml
from django.conf import settings
from django.core.management import get_commands, load_command_class
from django.test import override_settings
from uvicorn.main import main as uvicorn

from tests.docs.examples import Block, bare, blocks
from tests.docs.production import FOLDER
from tests.end_to_end.processes import ROOT
from vskill import checks as vskill_checks
from vskill.configuration import VARIABLES
from vskill.environments import build_environment
from vskill.variables import read_variables

DECLARED: Final = {variable.name for variable in VARIABLES}
# Programs that set up a server, and so are not run, but for those of the drills, which test_restore runs.
ADMINISTRATION: Final = (
    *("apt-get", "cp", "createdb", "dropdb", "install", "journalctl", "mv", "nginx", "pg_dump", "pg_restore", "rm"),
    *("sqlite3", "systemctl", "useradd", "userdel"),
)
# All that is done with git: what the first lines of the README and an upgrade need.
GIT: Final = ("clone ADDRESS vskill", "clone ADDRESS /srv/vskill", "fetch", "checkout VERSION")


def check_drawn(block: Block) -> None:
    """Check that a picture is one that the code draws, which other tests compare."""
    assert re.search(r"[Ww]ritten by `?(manage\.py|python -m)", block.document.read_text(encoding="utf-8"))


def check_environments(block: Block) -> None:
    """Check the value of VSKILL_ENVIRONMENTS as a start does, with the databases that its page configures."""
    value = json.loads(block.text)
    secrets = {variable: "value" for options in value.values() for variable in options.get("secrets", {}).values()}
    page = "".join(one.text for one in blocks(block.document) if one.language == "ini")
    given = {**dict(line.split("=", 1) for line in page.splitlines()), "VSKILL_ENVIRONMENTS": json.dumps(value)}
    read = read_variables(VARIABLES, given, {})
    assert all(build_environment(name, options, secrets).name == name for name, options in value.items())
    databases = {**settings.DATABASES, **read["VSKILL_DATABASES"].value}
    with (
        patch.dict(os.environ, secrets),
        patch.object(settings, "DATABASES", databases),
        override_settings(VSKILL_ENVIRONMENTS=read["VSKILL_ENVIRONMENTS"].value),
    ):
        assert vskill_checks.check_environments(None) == []


def check_settings(block: Block) -> None:
    """Check lines of a file .env."""
    values = dict(line.split("=", 1) for line in block.lines())
    assert values.keys() <= DECLARED
    read_variables(VARIABLES, values, {})


def check_map(block: Block) -> None:
    """Check that every file and folder of a map is there; a line without indentation names a package."""
    folder = ROOT
    for line in block.text.splitlines():
        names, _, _about = line.strip().partition("  ")
        if not line.startswith(" "):
            folder = ROOT / names.rstrip("/")
            assert folder.is_dir(), line
        elif not line.startswith(" " * 8):
            paths = re.findall(r"^[\w./ ]+", names)[0].split()
            missing = [name for name in paths if re.search(r"/$|\.py$", name) and not (folder / name).exists()]
            assert missing == [], line


def check_python_example(block: Block) -> None:
    """Check that an example in Python can be read; a test of what it is about runs it."""
    compile(block.text, block.place, "exec")


def check_shell(block: Block) -> None:
    """Check that a shell can read a block; its lines are checked one by one, by ``COMMANDS``."""
    assert subprocess.run(["bash", "-n", "-c", block.text], check=False).returncode == 0


def check_yaml(block: Block) -> None:
    """Check a manifest of apm, which ``tests.clients.test_documented_lines`` installs, or a workflow of GitHub.

    A shell can read the steps of a workflow, and the actions that ours use are the same ones.
    """
    written = yaml.safe_load(block.text)
    if "registries" in written:
        assert CLIENTS_RUN in written["registries"][written["registries"]["default"]]["url"]
        return
    steps = [step for job in written["jobs"].values() for step in job["steps"]]
    ours = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    for step in steps:
        if "run" in step:
            assert subprocess.run(["bash", "-n", "-c", step["run"]], check=False).returncode == 0
        elif (action := step["uses"].partition("@")[0]) in ours:
            assert f"uses: {step['uses']}" in ours, action


# What a line has that a client runs against a registry.
CLIENTS_RUN: Final = "REGISTRY/"

BLOCKS: Final[dict[str, Callable[[Block], None]]] = {
    "mermaid": check_drawn,
    "json": check_environments,
    "ini": check_settings,
    "text": check_map,
    "yaml": check_yaml,
    "python": check_python_example,
    "": check_shell,
}


def check_manage(words: list[str], span: bool = False) -> None:
    """Check that a management command exists and takes these arguments; in running text its name may stand alone."""
    assert words[1] in get_commands()
    if "--database" in words or (span and len(words) == 2):
        return
    parser = load_command_class(get_commands()[words[1]], words[1]).create_parser("manage.py", words[1])
    parser.parse_args(words[2:])


def check_make(words: list[str]) -> None:
    """Check that the Makefile has the target, and that a variable is one of it or of vskill."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    for word in words[1:]:
        name, is_variable, value = word.partition("=")
        defined = re.search(rf"^{name} \?=" if is_variable else rf"^{name}:", text, re.MULTILINE)
        assert defined or (is_variable and name in DECLARED), f"the Makefile has no {name}"
        if name == "ARGS" and value.startswith("tests/"):
            check_pytest(["pytest", *value.split()])


def check_python(words: list[str]) -> None:
    """Check that the module of ``python -m`` exists, and the paths that it is given."""
    assert words[1] == "-m"
    assert importlib.util.find_spec(words[2]) is not None
    if "--" in words:
        check_pytest([bare(words[words.index("--") + 1]), *words[words.index("--") + 2 :]])


def check_pytest(words: list[str]) -> None:
    """Check that the paths exist, and that each name after -k is one in their tests."""
    chosen = words[words.index("-k") + 1] if "-k" in words else ""
    places = [ROOT / word.partition("::")[0] for word in words[1:] if "/" in word]
    assert places
    assert [place for place in places if not place.exists()] == []
    files = [file for place in places for file in (place.rglob("test_*.py") if place.is_dir() else [place])]
    text = "\n".join(f"{file.name} {file.read_text(encoding='utf-8')}" for file in files)
    assert text
    assert [name for name in re.findall(r"\w+", chosen) if name not in ("and", "or", "not") and name not in text] == []


def check_uvicorn(words: list[str]) -> None:
    """Check the options with uvicorn's own parser."""
    context = uvicorn.make_context("uvicorn", words[1:])
    assert context.params["app"] == "vskill.asgi:application"
    assert context.params["lifespan"] == "off"


def check_git(words: list[str]) -> None:
    """Check that a command is one of ``GIT``, or one with the registry, which ``tests.clients`` runs."""
    assert " ".join(words[1:]) in GIT or CLIENTS_RUN in " ".join(words)


def check_client(words: list[str]) -> None:
    """Check that ``tests.clients.test_documented_lines`` runs the line, with the same words however they are quoted."""
    page = ROOT / "docs" / "clients.md"
    run = [shlex.split(line) for block in blocks(page) if not block.language for line in block.lines()]
    assert words in run


def check_curl(words: list[str]) -> None:
    """Check the options; ``test_curl_is_answered`` sends the requests."""
    assert [word for word in words[1:] if word.startswith("-")] in (["-d"], ["--fail"])


def check_pipx(words: list[str]) -> None:
    """Check that the project is what is installed; ``test_scan_program`` builds it and runs its command."""
    assert words[1:] == ["install", "git+ADDRESS"]


def check_pip(words: list[str]) -> None:
    """Check that what is installed is pinned for our own tests."""
    pinned = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8").lower()
    assert words[1] == "install"
    assert [name for name in words[2:] if f"\n{name}==" not in pinned] == []


def check_model_signing(words: list[str]) -> None:
    """Check the options with the tool's own parser; ``test_public_tools`` runs it."""
    from model_signing import _cli  # noqa: PLC0415 - slow to load, and for one command

    command: Any = _cli.main
    for word in words[1:3]:
        command = command.commands[word]
    assert set(words[3:]) & {"--signature", "--public_key"}
    known = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
    assert [word for word in words[3:] if word.startswith("-") and word not in known] == []


def check_program(words: list[str]) -> None:
    """Check that the program takes these arguments, as ``manage.py scan`` does."""
    program = ROOT / "pyproject.toml"
    assert f"{words[0]} = " in program.read_text(encoding="utf-8")
    check_manage(["manage.py", "scan", *words[1:]])


def check_shell_word(words: list[str]) -> None:
    """Check that a folder is the checkout, and that a variable is one of vskill."""
    assert words[1].partition("=")[0] in DECLARED | {"vskill", "/srv/vskill"}


def check_administration(words: list[str]) -> None:
    """Check that the units and the files of the checkout that a command names exist."""
    units = {path.stem for path in FOLDER.glob("*.service")}
    assert {word for word in words if word.startswith("vskill-")} <= units
    files = [word for word in words[1:] if word.startswith(("docs/", ".env."))]
    assert [name for name in files if not (ROOT / name).is_file()] == []


COMMANDS: Final[dict[str, Callable[[list[str]], None]]] = {
    "manage.py": check_manage,
    "make": check_make,
    "python": check_python,
    "pytest": check_pytest,
    "uvicorn": check_uvicorn,
    "git": check_git,
    "curl": check_curl,
    "pipx": check_pipx,
    "pip": check_pip,
    "model_signing": check_model_signing,
    **dict.fromkeys(("npx", "claude", "codex", "apm"), check_client),
    "vskill-scan": check_program,
    **dict.fromkeys(("cd", "export", "unset"), check_shell_word),
    **dict.fromkeys(ADMINISTRATION, check_administration),
}
