"""The clawhub client, unmodified, against a running server."""

from __future__ import annotations

import json

from django.contrib.auth import get_user_model
from django.utils import timezone

from marketplace.catalog import delete_skill, quarantine_skill, quarantine_version, yank_version
from marketplace.ownership.transfers import hand_over
from tests.clients.conftest import CLIENT_SECONDS, ClientMachine
from tests.marketplace.factories import publish_example
from vskill.access_tokens.device_logins import decide
from vskill.access_tokens.models import AccessToken, DeviceLogin
from vskill.access_tokens.scopes import Scope
from vskill.access_tokens.tokens import make_token, revoke
from vskill.environments import WorkerEnv


def test_it_searches_explores_and_inspects(env: WorkerEnv, machine: ClientMachine) -> None:
    publish_example(env, name="pdf-tools", description="Merges documents", declared_version="1.0.0")

    assert "pdf-tools" in machine.shell("npx clawhub search merges")
    assert "pdf-tools" in machine.shell("npx clawhub search pdf --prefix")
    for sort in ("newest", "updated", "downloads", "trending"):
        assert "pdf-tools" in machine.shell(f"npx clawhub explore --sort {sort} --limit 5")
    shown = machine.shell("npx clawhub inspect @acme/pdf-tools --versions --files --json")
    assert json.loads(shown[shown.index("{") :])["skill"]["slug"] == "pdf-tools"


def test_it_installs_what_was_published(env: WorkerEnv, machine: ClientMachine) -> None:
    publish_example(
        env, files={"SKILL.md": "---\nname: hello-skill\ndescription: x\n---\n", "data/a.bin": b"\0\xff\r\n"}
    )

    machine.shell("npx clawhub install hello-skill")

    assert (machine.work / "skills/hello-skill/data/a.bin").read_bytes() == b"\0\xff\r\n"
    assert "hello-skill" in machine.shell("npx clawhub list")


def test_it_updates_to_a_new_version_and_says_when_there_is_none(env: WorkerEnv, machine: ClientMachine) -> None:
    publish_example(env, declared_version="1.0.0", body="First.")
    machine.shell("npx clawhub install @acme/hello-skill")
    assert "up to date" in machine.shell("npx clawhub update --all")

    publish_example(env, declared_version="1.1.0", body="Second.")
    assert "1.1.0" in machine.shell("npx clawhub update --all")
    assert "Second." in (machine.work / "skills/@acme/hello-skill/SKILL.md").read_text()


def test_it_installs_an_exact_version_even_if_that_is_yanked(env: WorkerEnv, machine: ClientMachine) -> None:
    publish_example(env, declared_version="1.0.0", body="First.")
    publish_example(env, declared_version="2.0.0", body="Second.")
    yank_version(env, "hello-skill", "1.0.0", actor="test", reason="broken")

    machine.shell("npx clawhub install hello-skill --version 1.0.0")

    assert "First." in (machine.work / "skills/hello-skill/SKILL.md").read_text()


def test_it_reads_one_file_and_verifies(env: WorkerEnv, machine: ClientMachine) -> None:
    publish_example(env)

    assert "echo hello" in machine.shell("npx clawhub inspect hello-skill --file scripts/run.sh")
    assert "pass" in machine.shell("npx clawhub skill verify hello-skill")


def test_a_quarantined_skill_cannot_be_installed(env: WorkerEnv, machine: ClientMachine) -> None:
    publish_example(env)
    quarantine_skill(env, "hello-skill", actor="test", reason="steals keys")

    assert "quarantined" in machine.shell("npx clawhub install hello-skill", code=1)
    assert not (machine.work / "skills/hello-skill").exists()


def test_an_update_of_everything_names_what_was_withdrawn_and_goes_on(env: WorkerEnv, machine: ClientMachine) -> None:
    for name in ("a-skill", "b-skill"):
        publish_example(env, name=name, declared_version="1.0.0")
        machine.shell(f"npx clawhub install {name}")
    quarantine_skill(env, "a-skill", actor="test", reason="steals keys")
    publish_example(env, name="b-skill", declared_version="1.1.0", body="Second.")

    printed = machine.shell("npx clawhub update --all")

    assert "a-skill: This skill is quarantined" in printed
    assert "steals keys" in printed
    assert "1.1.0" in printed


def test_what_was_approved_in_spite_of_findings_is_suspicious(env: WorkerEnv, machine: ClientMachine) -> None:
    publish_example(env, verdict="held_high")

    printed = machine.shell("npx clawhub inspect hello-skill --version 0.0.1")
    assert "CLEAN" not in printed
    assert "Licence: MIT." in printed
    assert "--force" in machine.shell("npx clawhub install hello-skill", code=1)
    machine.shell("npx clawhub install hello-skill --force")


def test_it_finds_the_api_by_the_address_of_the_site(env: WorkerEnv, machine: ClientMachine) -> None:
    publish_example(env)
    assert "hello-skill" in machine.shell("npx clawhub search hello", without=("CLAWHUB_REGISTRY",))


def test_it_logs_in_with_a_token_until_that_is_revoked(env: WorkerEnv, machine: ClientMachine) -> None:
    publish_example(env)
    user = get_user_model()._default_manager.create_user("ada")
    row, token = make_token(env, user, name="laptop", scopes=[Scope.SUBMIT])

    assert "Logged in as @ada" in machine.shell(f"npx clawhub login --token {token} --no-input")
    assert "ada" in machine.shell("npx clawhub whoami")
    assert "hello-skill" in machine.shell("npx clawhub search hello")
    machine.shell("npx clawhub install hello-skill")

    for command, said in (("star", "Starred"), ("star", "already starred"), ("unstar", "Unstarred")):
        assert said in machine.shell(f"npx clawhub {command} @acme/hello-skill --yes")

    revoke(row, actor="ada", reason="lost")
    for command in ("whoami", "search hello", "install hello-skill --force"):
        printed = machine.shell(f"npx clawhub {command}", code=1)
        assert "This token was revoked on" in printed
        assert token not in printed
    assert "knows no such token" in machine.shell("npx clawhub login --token nonsense --no-input", code=1)


def test_it_logs_in_as_a_device_that_a_person_lets_in(env: WorkerEnv, machine: ClientMachine) -> None:
    user = get_user_model()._default_manager.create_user("ada")
    with machine.started("npx clawhub login --device --label laptop") as program:
        assert program.stdout is not None
        code = next(line.rpartition(":")[2] for line in program.stdout if "enter code:" in line)
        assert decide(env, code, user, approve=True)
        assert "Logged in as @ada" in program.stdout.read()
        assert program.wait(CLIENT_SECONDS) == 0
    assert "ada" in machine.shell("npx clawhub whoami")
    assert AccessToken.objects.get().name == "laptop"

    with machine.started("npx clawhub login --device") as program:
        assert program.stdout is not None
        assert any("enter code:" in line for line in program.stdout)
        DeviceLogin.objects.update(expires_at=timezone.now())
        assert "Device code expired. Please try again." in program.stdout.read()
        assert program.wait(CLIENT_SECONDS) == 1


def test_it_installs_and_updates_by_a_handle_with_dots_and_by_the_short_one(
    env: WorkerEnv, machine: ClientMachine
) -> None:
    corp = "https://git.corp.example/platform/skills"
    publish_example(env, name="pdf-tools", repo_url=corp, declared_version="1.0.0")
    names = ("platform.git.corp.example", "platform--git--corp--example")
    for name in names:
        machine.shell(f"npx clawhub install @{name}/pdf-tools")
    publish_example(env, name="pdf-tools", repo_url=corp, declared_version="1.1.0", body="Second.")

    assert machine.shell("npx clawhub update --all").count("1.1.0") >= len(names)
    for name in names:
        assert "Second." in (machine.work / f"skills/@{name}/pdf-tools/SKILL.md").read_text()


def test_it_goes_on_updating_what_was_handed_to_another_publisher(env: WorkerEnv, machine: ClientMachine) -> None:
    publish_example(env, name="pdf-tools", declared_version="1.0.0")
    machine.shell("npx clawhub install @acme/pdf-tools")
    there = "https://github.com/newco/skills"
    hand_over(env, "pdf-tools", there, actor="op", reason="they split up")
    publish_example(env, name="pdf-tools", repo_url=there, declared_version="1.1.0", body="Second.")

    assert "1.1.0" in machine.shell("npx clawhub update --all")
    assert "Second." in (machine.work / "skills/@acme/pdf-tools/SKILL.md").read_text()
    machine.shell("npx clawhub install @newco/pdf-tools")


def test_what_is_pinned_stays_until_it_is_no_longer_and_goes_when_it_is_uninstalled(
    env: WorkerEnv, machine: ClientMachine
) -> None:
    publish_example(env, declared_version="1.0.0", body="First.")
    machine.shell("npx clawhub install hello-skill")
    machine.shell("npx clawhub pin hello-skill --reason 'as it is'")
    publish_example(env, declared_version="1.1.0", body="Second.")
    installed = machine.work / "skills/hello-skill/SKILL.md"

    machine.shell("npx clawhub update --all")
    assert "First." in installed.read_text()
    machine.shell("npx clawhub unpin hello-skill")
    machine.shell("npx clawhub update --all")
    assert "Second." in installed.read_text()

    machine.shell("npx clawhub uninstall hello-skill --yes")
    assert not installed.exists()
    assert "hello-skill" not in machine.shell("npx clawhub list")


def test_the_newest_version_that_is_offered_is_the_latest_and_what_is_withheld_is_given_to_nobody(
    env: WorkerEnv, machine: ClientMachine
) -> None:
    for version, body in (("1.0.0", "First."), ("1.1.0", "Second."), ("1.2.0", "Third.")):
        publish_example(env, declared_version=version, body=body)
    yank_version(env, "hello-skill", "1.2.0", actor="test", reason="broken")
    quarantine_version(env, "hello-skill", "1.0.0", actor="test", reason="steals keys")

    machine.shell("npx clawhub install hello-skill")
    assert "Second." in (machine.work / "skills/hello-skill/SKILL.md").read_text()
    assert "steals keys" in machine.shell("npx clawhub install hello-skill --version 1.0.0 --force", code=1)
    assert "Second." in (machine.work / "skills/hello-skill/SKILL.md").read_text()
    assert "1.2.0" not in machine.shell("npx clawhub update --all")

    # Of a skill that is gone, every way to it says so.
    delete_skill(env, "hello-skill", actor="test", reason="its author asked")
    for command in ("install hello-skill --force", "install hello-skill --version 1.1.0 --force"):
        assert "its author asked" in machine.shell(f"npx clawhub {command}", code=1)
    assert "hello-skill" not in machine.shell("npx clawhub search hello") + machine.shell("npx clawhub explore")
    for command in ("inspect hello-skill --version 1.1.0", "skill verify hello-skill"):
        machine.shell(f"npx clawhub {command}", code=1)
