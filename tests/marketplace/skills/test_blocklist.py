"""The block list: by repository, owner or content, never by a bare name."""

from __future__ import annotations

import io
import json

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from marketplace.models import HistoryEvent
from marketplace.skills.blocklist import BlockKind, InvalidBlock, add_block, is_blocked, list_blocks, remove_block
from vskill.environments import WorkerEnv
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace

pytestmark = pytest.mark.django_db
REPOSITORY = "https://github.com/acme/skills"


@pytest.mark.parametrize(
    ("kind", "value", "asked", "content", "blocked"),
    [
        ("repo", REPOSITORY, "https://GitHub.com/Acme/skills.git/", "", True),
        ("repo", REPOSITORY, "https://github.com/acme/skills-more", "", False),
        ("repo", "https://git.example/A/b", "https://git.example/a/b", "", False),
        ("repo", "https://www.github.com/acme/skills", REPOSITORY, "", True),
        ("repo", "https://git.example:443/a/b.git/", "https://git.example/a/b", "", True),
        ("repo", "https://git.example:8443/a/b", "https://git.example/a/b", "", False),
        ("owner", "github.com/acme", "https://github.com/acme/other", "", True),
        ("owner", "git.example:443/a", "https://git.example/a/b", "", True),
        ("owner", "git.example./a/", "https://www.git.example/A/b", "", True),
        ("owner", "git.example:8443/a", "https://git.example/a/b", "", False),
        ("owner", "git.example/Tea\u041c", "https://git.example/tea%D0%BC/b", "", True),
        ("owner", "git.example/te%61m", "https://git.example/Team/b", "", True),
        ("owner", "git.example/a%2541", "https://git.example/aA/b", "", False),
        ("owner", "gitlab.com/git", "https://gitlab.com/git/sub/b", "", True),
        ("owner", "gitlab.com/git/sub", "https://gitlab.com/git/other/b", "", False),
        ("owner", "git.example/" + "n" * 400, "https://git.example/" + "n" * 400 + "/b", "", True),
        ("owner", "github.com/acme", "https://gitlab.com/acme/other", "", False),
        ("owner", "github.com/acme", "https://github.com/acme-inc/other", "", False),
        ("content", "A" * 64, "https://github.com/anybody/else", "a" * 64, True),
        ("content", "a" * 64, "https://github.com/anybody/else", "b" * 64, False),
    ],
)
def test_what_an_entry_blocks(env: WorkerEnv, kind: str, value: str, asked: str, content: str, blocked: bool) -> None:
    add_block(env, BlockKind(kind), value, actor="test", reason="because")
    found = is_blocked(env, asked, content)
    assert (found is not None) is blocked
    if found is not None:
        assert found.reason == "because"


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("repo", "acme/skills"),
        ("repo", "hello-skill"),
        ("repo", f"{REPOSITORY}#main"),
        ("repo", f"{REPOSITORY}?tab=readme"),
        ("owner", "acme"),
        ("owner", ""),
        ("content", "abc"),
        ("content", ""),
    ],
)
def test_a_bare_name_cannot_be_blocked(env: WorkerEnv, kind: str, value: str) -> None:
    with pytest.raises(InvalidBlock):
        add_block(env, BlockKind(kind), value, actor="test", reason="because")
    assert list(list_blocks(env)) == []


def test_a_block_needs_a_reason(env: WorkerEnv) -> None:
    with pytest.raises(InvalidBlock):
        add_block(env, BlockKind.OWNER, "github.com/acme", actor="test", reason=" ")


def test_an_entry_that_was_damaged_blocks_all_the_same(env: WorkerEnv) -> None:
    add_block(env, BlockKind.OWNER, "github.com/acme", actor="test", reason="because")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE kv_kventry SET value = %s", ["{broken"])

    found = is_blocked(env, REPOSITORY)
    assert found is not None
    assert found.value == "github.com/acme"


def test_a_very_long_address_is_blocked_too(env: WorkerEnv) -> None:
    address = "https://git.example/" + "a" * 700 + "/b"
    add_block(env, BlockKind.REPO, address, actor="test", reason="because")
    assert is_blocked(env, address) is not None
    assert is_blocked(env, address + "c") is None
    assert [block.value for block in list_blocks(env)] == [address]


def test_a_block_with_www_of_an_earlier_release_is_taken_back(env: WorkerEnv) -> None:
    KVNamespace(KVEntry, env).put_sync("blocked:repo:https://www.h.org/a/b", {"value": "https://www.h.org/a/b"})
    (old,) = list_blocks(env)
    assert remove_block(env, old.kind, old.value, actor="test", reason="fixed")
    assert list(list_blocks(env)) == []


def test_a_block_is_taken_back_and_both_are_remembered(env: WorkerEnv) -> None:
    add_block(env, BlockKind.OWNER, "github.com/acme", actor="ada", reason="because")
    assert remove_block(env, BlockKind.OWNER, "GitHub.com/ACME/", actor="bob", reason="appeal")
    assert not remove_block(env, BlockKind.OWNER, "github.com/acme", actor="bob", reason="again")

    assert is_blocked(env, REPOSITORY) is None
    assert list(HistoryEvent.objects.order_by("id").values_list("subject", "action", "actor")) == [
        ("blocked:owner:github.com/acme", "blocked", "ada"),
        ("blocked:owner:github.com/acme", "unblocked", "bob"),
    ]


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("block", *arguments, stdout=out)
    return out.getvalue()


@pytest.mark.parametrize("short", ["acme/skills", "Acme/Skills.git", "github.com/acme/skills"])
def test_the_command_takes_a_repository_as_submit_takes_it(env: WorkerEnv, short: str) -> None:
    assert run("add", "repo", short, "--reason", "stolen keys") == f"repo {REPOSITORY} is blocked (stolen keys)\n"
    assert is_blocked(env, REPOSITORY) is not None
    run("remove", "repo", short)
    assert is_blocked(env, REPOSITORY) is None


def test_the_command_keeps_the_list(env: WorkerEnv) -> None:
    run("add", "owner", "github.com/acme", "--reason", "stolen keys", "--actor", "ada")
    assert run("list") == "owner github.com/acme is blocked (stolen keys)\n"
    assert json.loads(run("list", "--json"))["actor"] == "ada"
    run("remove", "owner", "github.com/acme")
    assert run("list") == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ("add", "owner", "acme", "--reason", "x"),
        ("add", "owner", "github.com/acme"),
        ("add", "name", "hello", "--reason", "x"),
        ("remove", "owner", "github.com/nobody"),
    ],
)
def test_the_command_refuses_in_words(env: WorkerEnv, arguments: tuple[str, ...]) -> None:
    with pytest.raises(CommandError):
        run(*arguments)
