"""Two owners never share a publisher, and the block list, trust and ownership see the same owner."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any, Final

import pytest
from django.apps import apps
from django.db import connections

from marketplace.models import SkillEntry
from marketplace.skills.blocklist import BlockKind, add_block, is_blocked
from marketplace.skills.publishers import owned_by, publisher_of
from marketplace.skills.store import skill_namespace
from tests.marketplace.factories import publish_example
from vskill.environments import WorkerEnv

MIGRATION: Final[Any] = import_module("marketplace.migrations.0005_one_publisher_each")

OWNERS: Final = (
    *("https://github.com/victim/r", "https://github.com/victim-/r", "https://github.com/-victim/r"),
    *("https://github.com/a-b/r", "https://github.com/a+b/r", "https://github.com/a%20b/r", "https://github.com/a.b/r"),
    *("https://h.org/a/r", "https://h.org:8443/a/r", "https://h-8443.org/a/r", "https://h.org-8443/a/r"),
    *("https://evil/a.x/r", "https://x.evil/a/r", "https://h.org/A/r", "https://h.org/a%2Fb/r", "https://h.org/a-b/r"),
    *("https://h.org/%FF/r", "https://h.org/%FE/r", "https://h.org/%EF%BF%BD/r", "https://h.org/~a/r"),
    *("https://h.org/scm/a/r", "https://h.org/scm/b/r", "https://local/a/r", "file:///srv/a/r", "https://[::1]/a/r"),
    *(f"https://h.org/{'x' * 400}a/r", f"https://h.org/{'x' * 400}b/r", f"https://h.org/{'x' * 199}/r"),
)
SAME: Final = (
    ("https://github.com/Acme/r", "https://github.com/acme/other"),
    ("https://www.gitlab.com/acme/r", "https://gitlab.com:443/ACME/r"),
    ("https://gitlab.com/acme/sub/deep/r", "https://gitlab.com/acme/r"),
    ("https://user@h.org/a/r", "https://h.org./a/r"),
)


def test_no_two_owners_share_an_identity_or_a_handle() -> None:
    found = [publisher_of(owner) for owner in OWNERS]
    assert len({one.identity for one in found}) == len(found)
    assert len({one.handle for one in found}) == len(found)
    assert all(len(one.identity) <= 300 and len(one.handle) <= 200 for one in found)


@pytest.mark.parametrize(("one", "other"), SAME)
def test_spellings_of_one_owner_share_a_publisher(one: str, other: str) -> None:
    assert publisher_of(one).identity == publisher_of(other).identity
    assert publisher_of(one).handle == publisher_of(other).handle


@pytest.mark.parametrize(
    ("repo_url", "handle"),
    [
        ("https://github.com/acme/r", "acme"),
        ("https://gitlab.com/acme/sub/r", "acme.gitlab.com"),
        ("https://git.example.org/a_b-/r", "a_b-.git.example.org"),
        ("file:///srv/acme/r", "acme.local"),
    ],
)
def test_a_handle_that_is_safe_is_left_as_it_is(repo_url: str, handle: str) -> None:
    assert publisher_of(repo_url).handle == handle


@pytest.mark.parametrize(
    ("repo_url", "owner", "expected"),
    [
        ("https://git.corp/tools/r", "git.corp/tools", True),
        ("https://git.corp:8443/tools/r", "git.corp/tools", False),
        ("https://git.corp:8443/tools/r", "git.corp:8443/tools", True),
        ("https://git.corp/Tools/r", "git.corp/tools", False),
        ("https://gitlab.com/Tools/r", "gitlab.com/TOOLS", True),
        ("https://gitlab.com/tools/sub/r", "gitlab.com/tools", True),
        ("https://gitlab.com/tools/sub/r", "gitlab.com/tools/sub", True),
        ("https://gitlab.com/tools/other/r", "gitlab.com/tools/sub", False),
        ("https://gitlab.com/toolsy/r", "gitlab.com/tools", False),
        ("https://www.github.com/tools/r", "github.com/tools", True),
        ("https://git.corp/tea%D0%BC/r", "git.corp/tea\u043c", True),
        ("https://git.corp/team/r", "git.corp/te%61m", True),
        ("https://git.corp/scm/team/r", "git.corp/scm", False),
        ("file:///srv/tools/r", "/tools", True),
        ("file:///srv/tools/r", "local:443/tools", False),
        ("https://[x", "github.com/tools", False),
    ],
)
def test_an_owner_is_trusted_by_the_same_identity(repo_url: str, owner: str, expected: bool) -> None:
    assert owned_by(repo_url, [owner]) is expected


@pytest.mark.django_db
@pytest.mark.parametrize(
    "repo_url",
    [
        *("https://h.org/evil/r", "https://h.org/Evil/r", "https://www.h.org/evil/r", "https://h.org:443/evil/r"),
        *("https://h.org/evil/sub/deep/r", "https://h.org./evil/r"),
    ],
)
def test_a_blocked_owner_is_seen_in_every_spelling(env: WorkerEnv, repo_url: str) -> None:
    add_block(env, BlockKind.OWNER, "www.h.org/evil", actor="test", reason="evil")
    assert is_blocked(env, repo_url) is not None
    assert is_blocked(env, "https://h.org/good/r") is None


@pytest.mark.django_db
def test_a_blocked_subgroup_and_a_blocked_repository_are_seen(env: WorkerEnv) -> None:
    add_block(env, BlockKind.OWNER, "gitlab.com/group/evil", actor="test", reason="evil")
    add_block(env, BlockKind.REPO, "https://gitlab.com/group/bad", actor="test", reason="bad")
    assert is_blocked(env, "https://gitlab.com/group/evil/r") is not None
    assert is_blocked(env, "https://gitlab.com/group/good/r") is None
    assert is_blocked(env, "https://www.gitlab.com:443/Group/bad.git") is not None


@pytest.mark.parametrize("repo_url", [*OWNERS, *(one for pair in SAME for one in pair)])
def test_the_publisher_of_the_migration_is_the_one_of_the_marketplace(repo_url: str) -> None:
    found = publisher_of(repo_url)
    assert MIGRATION.publisher_of(repo_url) == (found.identity, found.handle)


@pytest.mark.django_db
def test_a_publisher_of_an_earlier_release_becomes_the_one_of_this(env: WorkerEnv) -> None:
    publish_example(env, name="theirs", repo_url="https://github.com/victim/r")
    publish_example(env, name="other", repo_url="https://github.com/a+b/r")
    row = SkillEntry.objects.get(slug="other")
    old = {**json.loads(row.value), "publisher": "github.com/a+b", "publisherHandle": "a-b"}
    skill_namespace(env).put_sync(row.key, old)
    untouched = SkillEntry.objects.get(slug="theirs").version
    for _again in range(2):
        MIGRATION.part_publishers(apps, connections[env.database].schema_editor())
    migrated = SkillEntry.objects.get(pk=row.pk)
    wanted = publisher_of("https://github.com/a+b/r")
    assert (migrated.publisher, migrated.publisher_handle) == (wanted.identity, wanted.handle)
    assert migrated.record.publisher_handle == wanted.handle
    assert migrated.version == row.version + 2
    assert SkillEntry.objects.get(slug="theirs").version == untouched
