"""Every example of the documents works as it stands there; one that no test knows how to try is a failure."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
from django.core.management import CommandError

from tests.docs.examples import DOCUMENTS, Block, Command, all_blocks, bare, blocks, commands, spans
from tests.docs.production import FOLDER, command_of, read
from tests.docs.rules import BLOCKS, COMMANDS, DECLARED, check_manage, check_shell_word, check_uvicorn
from tests.end_to_end.processes import ROOT
from vskill.configuration import KNOWN_ELSEWHERE


@pytest.mark.parametrize("block", all_blocks(), ids=lambda block: block.place)
def test_every_block_is_of_a_kind_that_is_tried(block: Block) -> None:
    check = BLOCKS.get(block.language)
    assert check is not None, f"no test knows what a block of {block.language!r} is: add a rule to BLOCKS"
    check(block)


@pytest.mark.parametrize("command", commands(), ids=lambda one: f"{one.place} {one.line}")
def test_every_command_is_one_that_is_tried(command: Command) -> None:
    words = command.words()
    check = COMMANDS.get(words[0])
    assert check is not None, f"no test knows how to try {words[0]!r}: add a rule to COMMANDS"
    if check is check_manage:
        check_manage(words, command.span)
    else:
        check(words)


def test_a_block_or_a_command_that_nobody_knows_would_be_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# New\n\n```toml\na = 1\n```\n\n    frobnicate --all\n", encoding="utf-8")
    strange, shell = blocks(page)
    assert strange.language not in BLOCKS
    assert [bare(line).split()[0] in COMMANDS for line in shell.lines()] == [False]


@pytest.mark.parametrize(
    "line",
    [
        "manage.py recover_stuk",
        "manage.py recover_stuck --dryrun",
        "manage.py pause",
        "make tests",
        "make test ARGS=tests/absent",
        "pytest tests/absent",
        "pytest tests/vskill/kv -k nonesuch",
        "python -m tests.nonesuch",
        "uvicorn --hots ::1 a:b",
        "git push origin",
        "cp docs/production/absent /etc/",
        "systemctl start vskill-absent",
    ],
)
def test_a_command_that_does_not_work_would_be_noticed(line: str) -> None:
    words = line.split()
    with pytest.raises((AssertionError, CommandError, click.UsageError)):
        COMMANDS[words[0]](words)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_variables_that_a_page_names_are_declared(document: Path) -> None:
    named = set(re.findall(r"\bVSKILL_[A-Z_]+[A-Z]\b", document.read_text(encoding="utf-8")))
    assert named - DECLARED - KNOWN_ELSEWHERE - {"VSKILL_"} == set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_paths_that_a_page_names_exist(document: Path) -> None:
    named = [
        (place, text)
        for place, text in spans(document)
        if re.fullmatch(r"(docs|tests|vskill|marketplace|submissions)/[\w./-]*", text)
    ]
    assert [(place, text) for place, text in named if not (ROOT / text).exists()] == []


def test_cron_lines_are_such_and_their_commands_work() -> None:
    lines = [line for line in read("vskill.cron").splitlines() if not line.startswith("#")]
    names = []
    for line in lines:
        *times, account, command = line.split(None, 6)
        assert (len(times), account) == (5, "vskill")
        place, _, rest = command.partition(" && ")
        words = bare(rest).split()
        check_shell_word(place.split())
        check_manage(words)
        assert words[2:] == ["-v", "0"]
        names.append(words[1])
    assert set(names) == {
        "recover_stuck",
        "external_scans",
        "rescan",
        "sign_published",
        "check_repositories",
        "poll_followed",
        "deliver",
        "purge_expired",
        "clean_scratch",
        "recount_downloads",
        "watch_references",
    }


@pytest.mark.parametrize("unit", sorted(path.name for path in FOLDER.glob("*.service")))
def test_units_start_what_the_program_understands(unit: str) -> None:
    _interpreter, *words = command_of(unit)
    if words[0] == "manage.py":
        check_manage(words)
    else:
        check_uvicorn(["uvicorn", *words])


def test_the_readme_leads_to_every_page() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    pages = [str(path.relative_to(ROOT)) for path in DOCUMENTS if path.name != "README.md"]
    assert [page for page in pages if f"]({page})" not in readme] == []
