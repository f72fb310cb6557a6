"""Teams: made and filled by the command and in the admin, each in its own environment."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.test import Client

from marketplace.models import HistoryEvent, SkillEntry
from marketplace.skills.audience import show_to
from tests.marketplace.factories import publish_example
from tests.vskill.sign_in.test_access import signed_in
from vskill.accounts.audiences import MEMBERS, PUBLIC, audiences_of, team_audience
from vskill.accounts.teams import TeamRefused, create_team, name_of_audience
from vskill.environments import WorkerEnv, build_environment
from vskill.models import Team

pytestmark = pytest.mark.django_db(transaction=True)


def run(command: str, *arguments: str) -> dict[str, Any]:
    out = io.StringIO()
    call_command(command, *arguments, "--json", stdout=out)
    said: dict[str, Any] = json.loads(out.getvalue())
    return said


def account(name: str) -> Any:
    return get_user_model()._default_manager.create_user(name)


def test_the_command_makes_fills_empties_and_deletes_teams(env: WorkerEnv) -> None:
    account("ada"), account("bob")
    assert run("team", "create", "hr")["members"] == []
    assert run("team", "add", "hr", "ada", "bob", "ada")["members"] == ["ada", "bob"]
    assert run("team", "remove", "hr", "bob")["members"] == ["ada"]
    assert [(one["name"], one["members"]) for one in run("team", "list")["teams"]] == [("hr", ["ada"])]
    assert run("team", "delete", "hr")["name"] == "hr"
    assert run("team", "list") == {"teams": []}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("create", "hr"), "already"),
        (("create", "HR people"), "no name for a team"),
        (("create", "members"), "neither public nor members"),
        (("create", "a" * 41), "40 at most"),
        (("add", "sales", "ada"), "it has: hr"),
        (("add", "hr", "ada", "eve"), "no account eve"),
        (("remove", "hr", "eve"), "no account eve"),
        (("delete", "sales"), "no team"),
    ],
)
def test_what_is_refused_changes_nothing(env: WorkerEnv, arguments: tuple[str, ...], said: str) -> None:
    account("ada")
    team = create_team(env, "hr")
    with pytest.raises(CommandError, match=said) as refused:
        call_command("team", *arguments)
    assert "Nothing was changed" in str(refused.value)
    assert (list(Team.objects.all()), team.members.count()) == ([team], 0)


def test_a_team_belongs_to_one_environment(env: WorkerEnv) -> None:
    other = build_environment("other", {}, {})
    ada = account("ada")
    for one in (env, other):
        create_team(one, "hr").members.add(ada)
    reader = build_environment(env.name, {"policy": {"sign_in_role": "viewer"}}, {})
    mine = Team.objects.get(environment=env.name)
    assert audiences_of(ada, reader) == (MEMBERS, team_audience(mine.pk))
    assert audiences_of(ada, env) == ()
    assert name_of_audience(other, team_audience(mine.pk)) == "nobody"


def test_the_command_shows_a_skill_to_a_team_and_says_to_whom(env: WorkerEnv) -> None:
    publish_example(env)
    team = create_team(env, "hr")
    assert run("audience", "hello-skill") == {"skill": "hello-skill", "audience": "public"}
    assert run("audience", "hello-skill", "--to", "hr", "--dry-run")["dryRun"] is True
    assert run("audience", "hello-skill")["audience"] == "public"
    assert run("audience", "hello-skill", "--to", "hr", "--reason", "salaries")["before"] == "public"
    assert SkillEntry.objects.get().audience == team_audience(team.pk)
    assert run("audience", "hello-skill")["audience"] == "hr"
    for arguments, said in (
        (("hello-skill", "--to", "public"), "Say why"),
        (("hello-skill", "--to", "sales", "--reason", "x"), "no team"),
        (("nothing",), "no skill"),
    ):
        with pytest.raises(CommandError, match=said):
            call_command("audience", *arguments)
    team.delete()
    assert run("audience", "hello-skill")["audience"] == "nobody"


def test_admins_fill_teams_in_the_admin_and_others_do_not_see_them(env: WorkerEnv) -> None:
    create_team(build_environment("other", {}, {}), "theirs")
    admin, operator = signed_in("admin", name="ada"), signed_in("operator", name="bob")
    added = admin.post("/admin/vskill/team/add/", {"name": "hr", "people": "ada\nbob\n"})
    assert added.status_code == 302
    team = Team.objects.get(name="hr")
    assert (team.environment, set(team.members.values_list("username", flat=True))) == (env.name, {"ada", "bob"})
    page = f"/admin/vskill/team/{team.pk}/change/"
    assert admin.post(page, {"name": "people", "people": "bob"}).status_code == 302
    team.refresh_from_db()
    assert (team.name, [one.username for one in team.members.all()]) == ("people", ["bob"])
    for given, said in (({"name": "hr!", "people": ""}, "no name"), ({"name": "x", "people": "eve"}, "no account eve")):
        assert said in admin.post("/admin/vskill/team/add/", given).content.decode()
    listed = admin.get("/admin/vskill/team/").content.decode()
    assert "people" in listed
    assert "theirs" not in listed
    for client in (operator, signed_in("reviewer", name="eve"), Client()):
        assert client.get(page).status_code in (302, 403)
        assert client.post(page, {"name": "mine", "people": "bob"}).status_code in (302, 403)
    assert Team.objects.filter(name="people").exists()


def test_an_operator_shows_skills_to_a_team_in_the_admin_and_a_reviewer_does_not(env: WorkerEnv) -> None:
    publish_example(env)
    team = create_team(env, "hr")
    row = SkillEntry.objects.get(slug="hello-skill")
    operator = signed_in("operator", name="op")
    listed = operator.get("/admin/marketplace/skillentry/").content.decode()
    assert "Show to the team hr only" in listed
    page = f"/admin/marketplace/skillentry/operate/show-to-team-{team.pk}/"
    assert signed_in("reviewer", name="eve").post(page, {"ids": row.pk, "reason": "mine"}).status_code == 403
    assert operator.post(page, {"ids": row.pk, "reason": "salaries"}).status_code == 302
    row.refresh_from_db()
    assert row.audience == team_audience(team.pk)
    assert HistoryEvent.objects.filter(action=f"shown to team:{team.pk}", actor="op", reason="salaries").exists()
    assert ">hr<" in operator.get(f"/admin/marketplace/skillentry/{row.pk}/change/").content.decode()
    show_to(env, "hello-skill", MEMBERS, actor="op", reason="all of us")
    assert operator.get("/admin/marketplace/skillentry/operate/show-to-team-999/").status_code == 404


def test_two_teams_of_one_name_are_refused_by_the_database(env: WorkerEnv) -> None:
    create_team(env, "hr")
    with pytest.raises(TeamRefused, match="already"):
        create_team(env, "hr")


def test_the_page_of_a_private_skill_says_who_sees_it(env: WorkerEnv) -> None:
    team, mate, judge = create_team(env, "hr"), signed_in("viewer", name="ada"), signed_in("reviewer", name="bob")
    team.members.add(get_user_model()._default_manager.get(username="ada"))
    told = {PUBLIC: [], MEMBERS: ["Members alone"], team_audience(team.pk): ["The team hr alone"]}
    for number, (audience, words) in enumerate(told.items()):
        publish_example(env, name=f"skill-{number}", audience=audience)
        for client in (mate, judge):
            page = client.get(f"/skills/skill-{number}").content.decode()
            assert re.findall(r"<dt>Who sees it</dt><dd>(.*?)</dd>", page) == words, audience
