"""A skill is handed from one publisher to another: names lead on, installs are updated, and it can be handed back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from django.core.management import CommandError, call_command
from django.test import Client

from marketplace.models import HistoryEvent, LogPending, SkillEntry, SkillTransfer, SkillVersion
from marketplace.ownership.transfers import TransferRefused, hand_over, home_below, offer, undo
from marketplace.provenance.statements import publication_statement
from marketplace.skills.audience import show_to
from marketplace.skills.blocklist import BlockKind, add_block
from marketplace.skills.count_check import recount
from marketplace.skills.count_reads import counts_of
from marketplace.skills.counts import PUBLISHER
from marketplace.skills.handles import present_handle
from marketplace.stars import star, stars_of
from submissions.states import State
from tests.git_factory import commit, make_repository, skill_md
from tests.marketplace.factories import publish_example
from tests.submissions.claiming.handing import ACME, NEWCO, account, handed
from tests.submissions.commands.run import run
from tests.submissions.front_door import submitted_one, worked_off
from vskill.accounts.roles import Role
from vskill.environments import WorkerEnv
from vskill.reserved_names import ReservedName
from vskill.worker_context import run_with_worker_env

pytestmark = pytest.mark.django_db(transaction=True)


def test_old_names_lead_to_it_everywhere_and_new_ones_as_well(env: WorkerEnv, client: Client) -> None:
    publish_example(env, name="pdf-tools")
    handed(env)

    for owner in ("acme", "@acme", "newco"):
        shown = client.get(f"/api/v1/skills/pdf-tools?ownerHandle={owner}").json()
        assert shown["owner"]["handle"] == "newco"
        for address in (
            f"/{owner}@pdf-tools/.well-known/agent-skills/index.json",
            f"/{owner}/pdf-tools/.well-known/agent-skills/index.json",
            f"/{owner}/.well-known/agent-skills/index.json",
            f"/git/{owner}/pdf-tools.git/info/refs?service=git-upload-pack",
            f"/git/{owner}.git/info/refs?service=git-upload-pack",
            f"/api/v1/download?slug=pdf-tools&ownerHandle={owner}",
        ):
            assert client.get(address).status_code == 200, address
    for owner in ("acme", "newco"):
        assert client.get(f"/@{owner}/pdf-tools")["Location"] == "/skills/pdf-tools"
        assert client.get(f"/api/v1/skills/{owner}/skills/pdf-tools").status_code == 200
        assert client.get(f"/api/search?q=pdf&owner={owner}").json()["skills"][0]["id"] == "newco/pdf-tools"
        sent = {"skills": [{"name": f"{owner}/skills/pdf-tools", "currentVersion": "0.0.0"}]}
        updates = client.post("/api/v1/skills/check-updates", json.dumps(sent), content_type="application/json").json()
        assert updates["results"][0]["latest"] == "0.0.1"
    assert client.get("/publishers/acme", follow=True).redirect_chain == [("/publishers/newco", 302)]
    assert client.get("/@other/pdf-tools").status_code == 404


def test_it_keeps_its_versions_downloads_and_stars_and_is_counted_where_it_is(env: WorkerEnv) -> None:
    publish_example(env, name="pdf-tools")
    publish_example(env, name="pdf-tools", body="Second.")
    skill = SkillEntry.objects.get(slug="pdf-tools")
    SkillEntry.objects.filter(pk=skill.pk).update(downloads=7)
    star(env, skill, 1)
    star(env, skill, 2)
    handed(env)

    skill = SkillEntry.objects.get(slug="pdf-tools")
    assert (skill.publisher, skill.publisher_handle, skill.repo_url) == ("github.com/newco", "newco", NEWCO)
    assert (skill.downloads, skill.latest_version, run_with_worker_env(env, lambda: stars_of(env, skill))) == (
        7,
        "0.0.2",
        2,
    )
    assert SkillVersion.objects.filter(skill=skill).count() == 2
    counts = counts_of(env, [("", PUBLISHER, "acme"), ("", PUBLISHER, "newco")])
    assert list(counts.values()) == [0, 1]
    assert recount(env) == 0


async def test_its_updates_come_from_the_new_repository_and_the_old_one_makes_another_skill(
    env: WorkerEnv, tmp_path: Path
) -> None:
    files = {"pdf-tools/SKILL.md": skill_md("pdf-tools")}
    repositories = {}
    for owner in ("acme", "newco"):
        (tmp_path / owner).mkdir()
        repositories[owner] = make_repository(tmp_path / owner / "skills.git", files)
    await worked_off(env, await submitted_one(env, f"file://{repositories['acme']}"))
    new_home = f"file://{tmp_path}/newco/skills"
    await sync_to_async(hand_over)(env, "pdf-tools", new_home, actor="op", reason="they split up")

    commit(repositories["newco"], {"pdf-tools/SKILL.md": skill_md("pdf-tools", "By its new owner.")})
    updated = await worked_off(env, await submitted_one(env, f"file://{repositories['newco']}"))
    assert (updated.state, updated.text("slug"), updated.text("version")) == (State.PUBLISHED, "pdf-tools", "0.0.2")

    commit(repositories["acme"], {"pdf-tools/SKILL.md": skill_md("pdf-tools", "By its old owner.")})
    other = await worked_off(env, await submitted_one(env, f"file://{repositories['acme']}"))
    assert (other.state, other.text("slug")) == (State.PUBLISHED, "acme-pdf-tools")
    skill = await SkillEntry.objects.aget(slug="pdf-tools")
    assert (skill.description, skill.publisher_handle) == ("By its new owner.", "newco.local")


def test_the_history_and_the_log_tell_of_it(env: WorkerEnv) -> None:
    publish_example(env, name="pdf-tools")
    handed(env)

    event = HistoryEvent.objects.get(action="transferred")
    assert event.reason == f"from @acme ({ACME}) to @newco ({NEWCO}): they split up"
    assert event.actor == "op"
    assert LogPending.objects.filter(kind="transferred").count() == 1


def test_a_version_says_for_ever_which_repository_it_was_checked_in(env: WorkerEnv, client: Client) -> None:
    publish_example(env, name="pdf-tools")
    handed(env)
    publish_example(env, name="pdf-tools", repo_url=NEWCO, body="Second.")

    for version, repository in (("0.0.1", ACME), ("0.0.2", NEWCO)):
        shown = client.get(f"/api/v1/skills/pdf-tools/verify?version={version}").json()["provenance"]
        assert (shown["repository"], shown["path"]) == (repository, "skills/pdf-tools")
        found = SkillVersion.objects.select_related("skill").get(version=version)
        source = publication_statement(env, found)["predicate"]["source"]
        assert (source["uri"], source["path"]) == (f"git+{repository}", "skills/pdf-tools")
        page = client.get(f"/skills/pdf-tools?version={version}").content.decode()
        assert f'<a href="{repository}"' in page
        assert f"{repository}/tree/{found.commit_sha}" in page
        assert ("Now from" in page) == (repository == ACME)


def test_it_can_be_handed_back_and_is_found_under_both_names_then(env: WorkerEnv, client: Client) -> None:
    publish_example(env, name="pdf-tools")
    before = SkillEntry.objects.get(slug="pdf-tools").record
    done = handed(env)
    undo(env, done.pk, actor="op", reason="a mistake")

    after = SkillEntry.objects.get(slug="pdf-tools").record
    assert replace(after, updated_at="") == replace(before, updated_at="")
    for owner in ("acme", "newco"):
        assert client.get(f"/api/v1/skills/pdf-tools?ownerHandle={owner}").status_code == 200
    with pytest.raises(TransferRefused, match="no transfer"):
        undo(env, done.pk, actor="op", reason="twice")


def test_only_the_last_transfer_is_undone(env: WorkerEnv) -> None:
    publish_example(env, name="pdf-tools")
    first = handed(env)
    second = handed(env, to="https://github.com/third/skills")
    with pytest.raises(TransferRefused, match="has changed hands or moved since"):
        undo(env, first.pk, actor="op", reason="x")
    undo(env, second.pk, actor="op", reason="x")
    undo(env, first.pk, actor="op", reason="x")
    assert SkillEntry.objects.get(slug="pdf-tools").publisher_handle == "acme"


def test_it_is_not_handed_back_over_what_was_published_there_meanwhile(env: WorkerEnv) -> None:
    publish_example(env, name="pdf-tools")
    done = handed(env)
    publish_example(env, name="pdf-tools", body="By its old owner.")
    with pytest.raises(TransferRefused, match="acme-pdf-tools is published from skills/pdf-tools of"):
        undo(env, done.pk, actor="op", reason="x")
    assert SkillEntry.objects.get(slug="pdf-tools").publisher_handle == "newco"


def test_names_lead_on_through_several_transfers_and_end_where_somebody_publishes_again(env: WorkerEnv) -> None:
    publish_example(env, name="pdf-tools", repo_url="https://git.corp.example/platform/skills")
    handed(env)
    handed(env, to="https://github.com/third/skills")

    for name in ("platform.git.corp.example", "platform--git--corp--example", "newco", "third"):
        assert present_handle(env, name) == "third", name
    publish_example(env, name="other", repo_url=NEWCO)
    assert present_handle(env, "newco") == "newco"
    handed(env, to="https://git.corp.example/platform/skills")
    # In a circle: whoever has it now.
    assert present_handle(env, "third") == "platform.git.corp.example"


def test_where_a_skill_went_is_told_to_nobody_who_may_not_see_it(env: WorkerEnv, client: Client) -> None:
    publish_example(env, name="pdf-tools")
    publish_example(env, name="csv-tools", repo_url="https://github.com/newco/data")
    show_to(env, "pdf-tools", "members", actor="op", reason="for us")
    handed(env)

    absent = client.get("/publishers/nobody").content.decode().replace("nobody", "acme")
    told = client.get("/publishers/acme")
    assert told.status_code == 404
    assert "newco" not in told.content.decode()
    assert told.content.decode().count("Nobody of this name") == absent.count("Nobody of this name")
    assert client.get("/@newco/pdf-tools").status_code == client.get("/@acme/pdf-tools").status_code == 404
    # A member is led on.
    member = Client()
    member.force_login(account("grace", Role.VIEWER))
    assert member.get("/publishers/acme")["Location"] == "/publishers/newco"
    assert member.get("/@acme/pdf-tools")["Location"] == "/skills/pdf-tools"


@pytest.mark.parametrize(
    ("to", "said"),
    [
        (ACME, "is of github.com/acme already"),
        ("https://github.com/blocked/skills", "is on the block list: malware"),
        ("https://github.com/taken/skills", "is published from skills/pdf-tools of"),
        ("upload://account/ada/pdf-tools", "has no repository"),
        ("https://github.com/corp-x/skills", "reserved here for github.com/corp"),
    ],
)
def test_it_is_not_handed_over_where_it_could_not_be_published(env: WorkerEnv, to: str, said: str) -> None:
    publish_example(env, name="pdf-tools")
    publish_example(env, name="pdf-tools", repo_url="https://github.com/taken/skills", body="Another.")
    add_block(env, BlockKind.OWNER, "github.com/blocked", actor="op", reason="malware")
    strict = replace(env, policy=replace(env.policy, reserved_names=(ReservedName("corp-*", ("github.com/corp",)),)))
    for act in (hand_over, offer):
        with pytest.raises(TransferRefused, match=said):
            act(strict, "pdf-tools", to, actor="op", reason="x")
    assert SkillEntry.objects.get(slug="pdf-tools").publisher_handle == "acme"
    assert not SkillTransfer.objects.exists()


def test_a_reserved_name_goes_to_its_owner_and_to_nobody_else(env: WorkerEnv) -> None:
    publish_example(env, name="corp-login")
    strict = replace(env, policy=replace(env.policy, reserved_names=(ReservedName("corp-*", ("github.com/corp",)),)))
    with pytest.raises(TransferRefused, match=r"reserved here for github\.com/corp"):
        handed(strict, "corp-login")
    handed(strict, "corp-login", "https://github.com/corp/skills")
    assert SkillEntry.objects.get(slug="corp-login").publisher_handle == "corp"


def test_the_command_hands_over_one_or_all_and_undoes_it(env: WorkerEnv) -> None:
    publish_example(env, name="pdf-tools")
    publish_example(env, name="csv-tools", repo_url="https://github.com/acme/data")
    publish_example(env, name="other", repo_url="https://github.com/other/skills")
    looked = run("transfer", "publisher", "acme", "github.com/newco", "--reason", "renamed", "--dry-run", "--json")
    assert [one["toRepoUrl"] for one in looked.document["transfers"]] == [NEWCO, "https://github.com/newco/data"]
    assert not SkillTransfer.objects.exists()

    done = run("transfer", "publisher", "@Acme", "github.com/newco", "--reason", "renamed", "--json").document
    assert [one["state"] for one in done["transfers"]] == ["done", "done"]
    assert set(SkillEntry.objects.values_list("publisher_handle", flat=True)) == {"newco", "other"}
    listed = run("transfer", "list", "--json").document["transfers"]
    assert [one["skill"] for one in listed] == ["csv-tools", "pdf-tools"]

    number = str(listed[0]["number"])
    assert run("transfer", "undo", number, "--reason", "x", "--dry-run", "--json").document["state"] == "done"
    assert run("transfer", "undo", number, "--reason", "x", "--json").document["state"] == "undone"
    assert SkillEntry.objects.get(slug="csv-tools").publisher_handle == "acme"
    run("transfer", "skill", "csv-tools", "https://github.com/third/all", "--path", "csv", "--reason", "x")
    assert SkillEntry.objects.get(slug="csv-tools").repo_url == "https://github.com/third/all"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("skill", "nothing", "github.com/newco"), "There is no skill 'nothing'"),
        (("skill", "pdf-tools", "github.com"), "is no host/owner"),
        (("skill", "pdf-tools", "account/ada"), "is no host/owner"),
        (("skill", "pdf-tools", "https://user:secret@github.com/newco/skills"), "It was neither used nor stored"),
        (("skill", "pdf-tools", "github.com/acme"), "is of github.com/acme already"),
    ],
)
def test_the_command_says_what_it_refuses(
    env: WorkerEnv, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    publish_example(env, name="pdf-tools")
    with pytest.raises(CommandError):
        call_command("transfer", *arguments, "--reason", "x")
    assert said in capsys.readouterr().out
    assert not SkillTransfer.objects.exists()


@pytest.mark.parametrize(("role", "ends"), [(Role.VIEWER, 302), (Role.REVIEWER, 403), (Role.OPERATOR, 302)])
def test_operators_alone_hand_it_back_in_the_admin(env: WorkerEnv, role: str, ends: int) -> None:
    publish_example(env, name="pdf-tools")
    done = handed(env)
    client = Client()
    client.force_login(account("grace", role))
    place = "/admin/marketplace/skilltransfer/"
    if role != Role.VIEWER:
        assert b"newco" in client.get(place).content
    assert client.post(f"{place}operate/undo/?ids={done.pk}", {"reason": "a mistake"}).status_code == ends
    handle = SkillEntry.objects.get(slug="pdf-tools").publisher_handle
    assert handle == ("acme" if role == Role.OPERATOR else "newco")


def test_a_list_of_the_admin_without_a_search_shows_all_that_it_has(env: WorkerEnv) -> None:
    publish_example(env, name="pdf-tools")
    handed(env)
    client = Client()
    client.force_login(account("grace", Role.OPERATOR))
    answer = client.get("/admin/marketplace/skilltransfer/?q=else")
    assert (answer.status_code, b"newco" in answer.content) == (200, True)


def test_a_home_below_another_owner_keeps_the_name_of_the_repository(env: WorkerEnv) -> None:
    record = SkillEntry.objects.get(slug=publish_example(env).slug).record
    assert home_below(record, "git.corp.example/platform") == "https://git.corp.example/platform/skills"
    assert home_below(record, "github.com/NewCo") == NEWCO
    local = replace(record, repo_url="file:///srv/acme/skills")
    assert home_below(local, "/newco") == "file:///srv/newco/skills"
    uploaded = replace(record, repo_url="upload://account/ada/hello-skill")
    assert home_below(uploaded, "github.com/ada") == "https://github.com/ada/hello-skill"
