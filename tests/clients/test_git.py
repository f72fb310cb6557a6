"""A real git, unmodified, against the repositories of a running server."""

from __future__ import annotations

import random

import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone

from marketplace.catalog import quarantine_skill, quarantine_version, yank_version
from marketplace.models import SkillEntry, SkillVersion
from marketplace.skill_sets.editing import Choice, Told, create_collection
from tests.clients.conftest import ClientMachine, LiveServer
from tests.marketplace.factories import publish_example, skill_md
from vskill.access_tokens.scopes import Scope
from vskill.access_tokens.tokens import make_token
from vskill.accounts.audiences import MEMBERS
from vskill.environments import WorkerEnv
from vskill.models import RoleGrant

WHO = {"actor": "test", "reason": "test"}
# Larger than a chunk, and not to be compressed.
DATA = random.Random(1).randbytes(200_000)


def token_to_read(env: WorkerEnv) -> str:
    """Return a token with which a member reads."""
    user = get_user_model()._default_manager.create_user("ada")
    RoleGrant.objects.create(
        user=user, environment=env.name, role="viewer", granted_by="root", granted_at=timezone.now()
    )
    return make_token(env, user, name="git", scopes=[Scope.READ])[1]


def test_a_private_skill_is_cloned_with_a_token_and_is_not_there_without(
    env: WorkerEnv, server: LiveServer, machine: ClientMachine
) -> None:
    publish_example(env, name="quiet-skill", audience=MEMBERS)
    publish_example(env, name="loud-skill", body="Loud.")
    token = token_to_read(env)
    bearing = f"git -c http.extraHeader='Authorization: Bearer {token}'"
    for name in ("acme/quiet-skill", "acme"):
        machine.shell(f"{bearing} clone -q {server.url}/git/{name} mine")
        assert (machine.work / "mine/plugins/quiet-skill/skills/quiet-skill/SKILL.md").exists()
        head = machine.shell("git -C mine rev-parse HEAD").strip()
        machine.shell("rm -rf mine && git init -q none")
        machine.shell(f"git -C none fetch -q {server.url}/git/{name} {head}", code=128)
        machine.shell("rm -rf none")
    assert "not found" in machine.shell(f"git clone -q {server.url}/git/acme/quiet-skill none", code=128)
    machine.shell(f"git clone -q {server.url}/git/acme all")
    assert not list((machine.work / "all").rglob("*quiet*"))


@pytest.mark.parametrize("protocol", [0, 2])
def test_a_skill_is_cloned_fetched_by_its_commit_and_gone_when_it_is_withdrawn(
    env: WorkerEnv, server: LiveServer, machine: ClientMachine, protocol: int
) -> None:
    git = f"git -c protocol.version={protocol} -c transfer.fsckObjects=true -c core.autocrlf=true"
    files: dict[str, bytes | str] = {
        "SKILL.md": skill_md("hello-skill", "Says hello."),
        "run.sh": "#!/bin/sh\r\n",
        "a/b/data.bin": DATA,
    }
    publish_example(env, declared_version="1.0.0", files=files | {"copy of data.bin": DATA, "empty": ""})
    publish_example(env, declared_version="1.1.0", files=files | {"größer.md": "bigger\r\n"})
    address = f"{server.url}/git/acme/hello-skill"

    machine.shell(f"{git} clone -q {address}")
    folder = "plugins/hello-skill/skills/hello-skill"
    cloned = machine.work / "hello-skill" / folder
    assert sorted(str(one.relative_to(cloned)) for one in cloned.rglob("*") if one.is_file()) == [
        "SKILL.md",
        "a/b/data.bin",
        "größer.md",
        "run.sh",
    ]
    assert (cloned / "a/b/data.bin").read_bytes() == DATA
    assert (cloned / "größer.md").read_bytes() == b"bigger\r\n"
    assert (cloned / "run.sh").stat().st_mode & 0o111
    assert not (cloned / "SKILL.md").stat().st_mode & 0o111
    assert "clean" in machine.shell("git -C hello-skill status")
    machine.shell("git -C hello-skill fsck --strict --full")
    log = machine.shell("git -C hello-skill log --format='%an %at %s'").splitlines()
    made = int(SkillVersion.objects.get(version="1.1.0").created_at.timestamp())
    assert log == [f"vskill {made} hello-skill 1.1.0"]
    assert machine.shell("git -C hello-skill tag").split() == ["1.0.0", "1.1.0"]
    head, old = machine.shell("git -C hello-skill rev-parse HEAD 1.0.0").split()

    # As clients fetch that follow a branch, take one commit, or have something already.
    machine.shell(f"{git} clone -q --depth 1 --branch 1.0.0 {address}.git shallow")
    assert machine.shell("git -C shallow rev-parse HEAD").strip() == old
    assert (machine.work / "shallow" / folder / "copy of data.bin").read_bytes() == DATA
    machine.shell(f"git init -q one && {git} -C one fetch -q --depth 1 {address} {old}")
    assert machine.shell("git -C one rev-parse FETCH_HEAD").strip() == old
    publish_example(env, declared_version="1.2.0", files=files | {"new.md": "new\n"})
    machine.shell(f"{git} -C hello-skill fetch -q")
    assert "1.2.0" in machine.shell("git -C hello-skill log -1 --format=%s origin/main")
    assert SkillEntry.objects.get().downloads > 0

    # Anybody who has the number of a commit can ask for it.
    yank_version(env, "hello-skill", "1.1.0", **WHO)
    quarantine_version(env, "hello-skill", "1.0.0", **WHO)
    listed = machine.shell(f"{git} ls-remote {address}")
    assert head not in listed
    assert old not in listed
    for gone in (head, old):
        machine.shell(f"git init -q {gone}")
        refused = machine.shell(f"{git} -C {gone} fetch -q {address} {gone}", code=128)
        assert "not our ref" in refused
        assert not list((machine.work / gone / ".git/objects").rglob("*.pack"))
    quarantine_skill(env, "hello-skill", actor="test", reason="steals keys")
    assert "steals keys" in machine.shell(f"{git} clone -q {address} none", code=128)
    assert "Nothing can be pushed" in machine.shell(f"{git} -C hello-skill push origin HEAD:main", code=128)


def test_one_repository_holds_what_a_publisher_or_a_collection_offers(
    env: WorkerEnv, server: LiveServer, machine: ClientMachine
) -> None:
    for name in ("hello-skill", "pdf-tools", "gone"):
        publish_example(env, name=name)
    publish_example(env, name="doubtful", verdict="held_high")
    publish_example(
        env, name="for-git", files={"SKILL.md": skill_md("for-git", "Is odd."), ".gitattributes": "* -text"}
    )
    create_collection(env, "our-team", Told("Our team's set", "For all of us.", (Choice("pdf-tools"),)), **WHO)
    quarantine_skill(env, "gone", **WHO)

    machine.shell(f"git clone -q {server.url}/git/acme && git clone -q --depth 1 {server.url}/git/-/our-team.git")
    assert {one.name for one in (machine.work / "acme/plugins").iterdir()} == {"hello-skill", "pdf-tools"}
    assert {one.name for one in (machine.work / "our-team/plugins").iterdir()} == {"pdf-tools"}
    machine.shell("git -C acme fsck --strict")
    objects = machine.shell("git -C acme cat-file --batch-all-objects --batch-check")
    assert "gone" not in machine.shell("git -C acme log -p --all")
    assert objects

    # The same content is the same commit, whoever asks and when.
    machine.shell(f"git clone -q {server.url}/git/acme again")
    assert machine.shell("git -C again rev-parse HEAD") == machine.shell("git -C acme rev-parse HEAD")
    assert "by which git would" in machine.shell(f"git clone -q {server.url}/git/acme/for-git", code=128)
    machine.shell(f"git clone -q {server.url}/git/acme/doubtful")

    # The skills client reads the same repositories.
    listed = machine.shell(f"npx skills add {server.url}/git/acme.git --list")
    assert "hello-skill" in listed
    assert "pdf-tools" in listed
    machine.shell(f"npx skills add {server.url}/git/acme/hello-skill.git -a claude-code -y --copy")
    assert (machine.work / ".claude/skills/hello-skill/scripts/run.sh").exists()
