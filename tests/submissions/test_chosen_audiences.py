"""To whom a submitter wants a skill shown: said back, kept until it is published and after, and never widened."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.test import Client, override_settings

from marketplace.models import SkillEntry, SkillVersion
from marketplace.skills.audience import show_to
from submissions.chosen_audiences import chosen_audience
from submissions.models import SubmissionEntry
from submissions.operations import dequeue
from submissions.states import State
from submissions.store.queries import read_submission
from submissions.store.shown import hidden_among
from submissions.store.state_counts import count_states
from submissions.told import NOT_TOLD
from tests.git_factory import commit, make_repository
from tests.submissions.commands.run import run
from tests.submissions.factories import damage
from tests.submissions.following.followed import again, begin, work_off
from tests.submissions.front_door import drain, repository, skills, submitted
from tests.vskill.sign_in.test_access import signed_in
from vskill.access_tokens.scopes import Scope
from vskill.access_tokens.tokens import make_token
from vskill.accounts.audiences import MEMBERS, PUBLIC, is_within, narrower, seen_as, team_audience
from vskill.accounts.teams import add_members, create_team, delete_team, find_team, remove_members
from vskill.environments import WorkerEnv, get_environment

pytestmark = pytest.mark.django_db(transaction=True)

ASKED: Final[dict[str, Any]] = {"content_type": "application/json"}


def program(env: WorkerEnv, name: str, team: str, *scopes: Scope) -> Client:
    """Return the client of a program that reads and submits for a member of a team."""
    signed_in("submitter", name=name)
    create_team(env, team)
    add_members(env, team, [name])
    owner = get_user_model()._default_manager.get(username=name)
    token = make_token(env, owner, name="x", scopes=scopes or [Scope.READ, Scope.SUBMIT])[1]
    return Client(headers={"Authorization": f"Bearer {token}"})


def team(env: WorkerEnv, name: str) -> str:
    return team_audience(find_team(env, name).pk)


def submit(client: Client, url: str, audience: str = "", **more: Any) -> Any:
    """Submit a repository by the API and return the answer."""
    said = {"audience": audience} if audience else {}
    return client.post("/api/v1/submissions", {"repoUrl": url, **said, **more}, **ASKED)


def seen(client: Client, submission: str) -> list[bool]:
    """Return on which surfaces a client finds the only submission."""
    pages = (f"/submissions/{submission}", f"/api/v1/submissions/{submission}")
    lists = ("/queue", "/api/v1/submissions", "/queue?group=published", "/queue?group=active")
    return [
        *(client.get(path).status_code == 200 for path in pages),
        any(submission in client.get(path).content.decode() for path in lists),
        submission in client.get(f"/api/v1/submissions/{submission[:20]}").json().get("near", ()),
    ]


def test_what_is_submitted_for_a_team_is_there_for_nobody_else_before_and_after_it_is_published(
    env: WorkerEnv, tmp_path: Path
) -> None:
    mate, other, stranger = program(env, "mate", "hr"), program(env, "other", "sales"), Client()
    url = repository(tmp_path, skills("flamingo-pay"))
    answer = submit(mate, url, "hr")
    assert (answer.status_code, answer.json()["audience"]) == (202, "hr"), answer.content
    submission = answer.json()["id"]
    assert read_submission(env, submission).text("audience") == team(env, "hr")
    assert "It was submitted for <b>the team hr alone</b>" in mate.get(f"/submissions/{submission}").content.decode()

    assert seen(mate, submission) == [True] * 4
    assert seen(other, submission) == seen(stranger, submission) == [False] * 4
    assert sum(one.number for one in count_states(env).values()) == 0
    # They learn no more of it by submitting it themselves.
    told = submit(stranger, url).json()
    assert (told["outcome"], told["reason"], "id" in told) == ("not_told", NOT_TOLD, False)
    assert submit(other, url, "sales").json()["outcome"] == "not_told"
    assert SubmissionEntry.objects.count() == 1

    async_to_sync(drain)(env)
    row = SkillEntry.objects.get()
    assert row.audience == team(env, "hr")
    assert [client.get(f"/skills/{row.slug}").status_code for client in (mate, other, stranger)] == [200, 404, 404]
    assert seen(mate, submission) == [True] * 4
    assert seen(other, submission) == seen(stranger, submission) == [False] * 4
    # Who opens the skill opens what published it.
    show_to(env, row.slug, PUBLIC, actor="operator", reason="everybody may have it")
    assert seen(stranger, submission) == [True] * 4


def test_the_next_versions_of_it_are_for_whom_the_skill_is(env: WorkerEnv, tmp_path: Path) -> None:
    mate, stranger = program(env, "mate", "hr"), Client()
    path = make_repository(tmp_path / "pay.git", skills("flamingo-pay"))
    submit(mate, f"file://{path}", "hr")
    async_to_sync(drain)(env)
    commit(path, {**skills("flamingo-pay"), "flamingo-pay/more.md": "More.\n"})
    assert submit(stranger, f"file://{path}").json()["outcome"] == "not_told"
    async_to_sync(drain)(env)
    assert SkillVersion.objects.count() == 2
    assert SkillEntry.objects.get().audience == team(env, "hr")
    assert stranger.get("/skills/flamingo-pay").status_code == 404


@pytest.mark.parametrize("path", ["/api/v1/submissions", "/api/v1/jobs"])
def test_a_team_that_is_not_there_and_one_of_others_are_refused_in_the_same_words(
    env: WorkerEnv, tmp_path: Path, path: str
) -> None:
    mate = program(env, "mate", "hr")
    create_team(env, "sales")
    url = repository(tmp_path, skills("one"))
    said = []
    for client, word in ((mate, "sales"), (mate, "seles"), (Client(), "hr"), (Client(), "members"), (mate, "team:1")):
        answer = client.post(path, {"repoUrl": url, "audience": word}, **ASKED)
        assert (answer.status_code, answer.json()["error"]) == (422, "audience_refused"), answer.content
        said.append(answer.json()["message"].replace(repr(word), "WORD"))
    assert len(set(said)) == 1
    assert "Nothing was submitted." in said[0]
    assert client.post(path, {"repoUrl": url, "audience": 7}, **ASKED).json()["error"] == "bad_request"
    submits = program(env, "robot", "robots", Scope.SUBMIT)
    assert submits.post(path, {"repoUrl": url, "audience": "robots"}, **ASKED).status_code == 422
    assert not SubmissionEntry.objects.exists()


def test_nobody_chooses_more_people_than_policy_shows_a_source_to(env: WorkerEnv, tmp_path: Path) -> None:
    (tmp_path / "hr").mkdir()
    make_repository(tmp_path / "hr" / "salaries", skills("flamingo-pay"))
    rules = {
        "source_rewrites": [["https://git.corp.example/", f"file://{tmp_path}/"]],
        "audiences": {"git.corp.example": "members", "git.corp.example/hr": "hr"},
    }
    url = "https://git.corp.example/hr/salaries"
    mate = program(env, "mate", "hr")
    create_team(env, "sales")
    add_members(env, "sales", ["mate"])
    with override_settings(VSKILL_ENVIRONMENTS={"default": {"hosts": ["testserver"], "policy": rules}}):
        for word in ("public", "members", "sales"):
            answer = submit(mate, url, word)
            assert (answer.status_code, answer.json()["error"]) == (422, "audience_refused"), answer.content
            assert "to the team hr alone" in answer.json()["message"]
        corp = get_environment("default")
        with seen_as((MEMBERS, team(env, "hr"))):
            assert chosen_audience(corp, "https://git.corp.example/tools/x", "hr") == team(env, "hr")
        assert not SubmissionEntry.objects.exists()
        assert submit(mate, url, "hr").status_code == 202
    # The policy names another team by the time that it is published: neither is asked for, and a person decides.
    with override_settings(
        VSKILL_ENVIRONMENTS={
            "default": {"hosts": ["testserver"], "policy": {**rules, "audiences": {"git.corp.example/hr": "sales"}}}
        }
    ):
        async_to_sync(drain)(get_environment("default"))
    row = SubmissionEntry.objects.get()
    assert row.state == State.ON_HOLD
    assert "for another team" in read_submission(env, row.submission_id).text("reason")
    assert not SkillEntry.objects.exists()


def test_a_skill_that_others_see_is_not_submitted_for_fewer_and_stays_for_whom_it_is(
    env: WorkerEnv, tmp_path: Path
) -> None:
    mate = program(env, "mate", "hr")
    path = make_repository(tmp_path / "open.git", skills("open-one"))
    url = f"file://{path}"
    submit(Client(), url)
    pending = submit(mate, url, "hr")
    assert (pending.status_code, pending.json()["error"]) == (422, "audience_refused")
    assert "it is on its way" in pending.json()["message"]
    async_to_sync(drain)(env)
    commit(path, {**skills("open-one"), "open-one/more.md": "More.\n"})
    refused = submit(mate, url, "hr")
    assert (refused.status_code, refused.json()["outcome"]) == (422, "shown_to_others")
    assert "It is published here for everybody" in refused.json()["message"]
    assert SubmissionEntry.objects.count() == 1
    # For everybody it is taken, and who asks for more people than the skill has gets those of the skill.
    assert submit(mate, url, "public").status_code == 202
    async_to_sync(drain)(env)
    show_to(env, "open-one", team(env, "hr"), actor="operator", reason="it became ours")
    commit(path, {**skills("open-one"), "open-one/more.md": "Much more.\n"})
    assert submit(mate, url, "members").status_code == 202
    async_to_sync(drain)(env)
    assert (SkillVersion.objects.count(), SkillEntry.objects.get().audience) == (3, team(env, "hr"))


def test_what_an_operator_opens_meanwhile_is_held_and_not_shown_to_everybody(env: WorkerEnv, tmp_path: Path) -> None:
    mate = program(env, "mate", "hr")
    path = make_repository(tmp_path / "pay.git", skills("flamingo-pay"))
    submit(mate, f"file://{path}", "hr")
    async_to_sync(drain)(env)
    commit(path, {**skills("flamingo-pay"), "flamingo-pay/secret.md": "More.\n"})
    submission = submit(mate, f"file://{path}", "hr").json()["id"]
    show_to(env, "flamingo-pay", PUBLIC, actor="operator", reason="everybody may have it")
    async_to_sync(drain)(env)
    found = read_submission(env, submission)
    assert (found.state, SkillVersion.objects.count()) == (State.ON_HOLD, 1)
    assert "for fewer people than see the skill now" in found.text("reason")
    assert seen(Client(), submission) == [False] * 4


def test_what_was_refused_for_a_team_stays_theirs_when_others_publish_the_skill(env: WorkerEnv, tmp_path: Path) -> None:
    mate = program(env, "mate", "hr")
    url = repository(tmp_path, skills("one"))
    submission = submit(mate, url, "hr").json()["id"]
    dequeue(env, submission, actor="operator", reason="no")
    again_by_stranger = submit(Client(), url).json()
    assert again_by_stranger["outcome"] == "created"
    async_to_sync(drain)(env)
    assert SkillEntry.objects.get().audience == PUBLIC
    assert hidden_among(env, [submission, again_by_stranger["id"]]) == {submission}


def test_what_is_opened_later_does_not_name_the_team_to_others(env: WorkerEnv, tmp_path: Path) -> None:
    mate, other = program(env, "mate", "hr"), program(env, "other", "sales")
    submission = submit(mate, repository(tmp_path, skills("flamingo-pay")), "hr").json()["id"]
    async_to_sync(drain)(env)
    show_to(env, "flamingo-pay", PUBLIC, actor="op", reason="for everybody now")
    page, call = f"/submissions/{submission}", f"/api/v1/submissions/{submission}"
    for client, told in ((mate, "hr"), (other, None), (Client(), None)):
        answer, shown = client.get(call), client.get(page)
        assert (answer.status_code, answer.json()["audience"], shown.status_code) == (200, told, 200)
        assert ("the team hr alone" in shown.content.decode()) is (told is not None)


def test_a_word_that_is_no_text_names_no_audience(env: WorkerEnv, tmp_path: Path) -> None:
    url = repository(tmp_path, skills("one"))
    program(env, "mate", "hr")
    for word in (r"\ud800", r"hr\u0000", r"\u0000"):
        body = f'{{"repoUrl": "{url}", "audience": "{word}"}}'
        answer = Client().generic("POST", "/api/v1/submissions", body, content_type="application/json")
        assert (answer.status_code, answer.json()["error"]) == (422, "audience_refused"), word


def test_the_form_offers_what_its_visitor_may_choose_and_keeps_the_rest_out(env: WorkerEnv, tmp_path: Path) -> None:
    url = repository(tmp_path, skills("one", "two"))
    assert 'name="audience"' not in Client().post("/submit", {"repository_url": url}).content.decode()
    mate = signed_in("submitter", name="mate")
    for name in ("hr", "sales"):
        create_team(env, name)
    add_members(env, "hr", ["mate"])
    page = mate.post("/submit", {"repository_url": url}).content.decode()
    assert '<option value="">Everybody, as this registry shows that source</option>' in page
    assert '<option value="members">Members alone</option><option value="hr">The team hr alone</option>' in page
    assert 'value="sales"' not in page
    listing = page.split('name="listing" value="')[1].split('"')[0]
    given = {"listing": listing, "repository_url": url, "paths": ["one"]}
    refused = mate.post("/submit", {**given, "audience": "sales"})
    assert (refused.status_code, "is no audience that you may choose" in refused.content.decode()) == (422, True)
    assert not SubmissionEntry.objects.exists()
    taken = mate.post("/submit", {**given, "audience": "hr"})
    assert (taken.status_code, SubmissionEntry.objects.get().audience) == (302, team(env, "hr"))


def test_a_job_is_for_whom_its_skills_are_and_says_so(env: WorkerEnv, tmp_path: Path) -> None:
    mate, other = program(env, "mate", "hr"), program(env, "other", "sales")
    url = repository(tmp_path, skills("one", "two"))
    job = mate.post("/api/v1/jobs", {"repoUrl": url, "audience": "hr"}, **ASKED).json()
    assert job["audience"] == "hr"
    # Before its turn, and afterwards.
    for _twice in range(2):
        pages = (f"/jobs/{job['id']}", f"/api/v1/jobs/{job['id']}")
        assert [[client.get(path).status_code for path in pages] for client in (mate, other, Client())] == [
            [200, 200],
            [404, 404],
            [404, 404],
        ]
        assert "submitted for <b>the team hr alone</b>" in mate.get(pages[0]).content.decode()
        async_to_sync(drain)(env)
    assert {row.audience for row in SkillEntry.objects.all()} == {team(env, "hr")}
    assert run("job", job["id"]).code == 0


def test_the_command_takes_any_team_and_says_which_there_are(env: WorkerEnv, tmp_path: Path) -> None:
    create_team(env, "hr")
    url = repository(tmp_path, skills("one"))
    with pytest.raises(CommandError, match="it has: hr"):
        call_command("submit", url, "--audience", "hrr")
    assert not SubmissionEntry.objects.exists()
    ended = run("submit", url, "--audience", "hr", "--json")
    assert (ended.code, '"audience": "hr"' in ended.out) == (0, True), ended
    assert SubmissionEntry.objects.get().audience == team(env, "hr")


def test_what_a_followed_repository_brings_is_for_whom_the_rest_of_it_was_submitted(
    env: WorkerEnv, tmp_path: Path
) -> None:
    mate = program(env, "mate", "hr")
    path = make_repository(tmp_path / "pay.git", skills("one"))
    url = f"file://{path}"
    submit(mate, url, "hr")
    async_to_sync(drain)(env)
    followed = begin(env, url)
    commit(path, skills("one", "two"))
    assert again(env, followed).submitted == 1
    work_off(env)
    assert {row.slug: row.audience for row in SkillEntry.objects.all()} == dict.fromkeys(
        ("one", "two"), team(env, "hr")
    )
    # What an operator has opened goes on, for everybody.
    show_to(env, "one", PUBLIC, actor="operator", reason="everybody may have it")
    commit(path, {**skills("one", "two"), "one/more.md": "More.\n"})
    assert again(env, followed).submitted == 1
    work_off(env)
    assert SkillVersion.objects.filter(skill__slug="one").count() == 2
    # Two teams chose: nobody can say for whom a new one is.
    create_team(env, "sales")
    add_members(env, "sales", ["mate"])
    commit(path, {**skills("one", "two", "three"), "one/more.md": "More.\n"})
    submit(mate, url, "sales", skillName="three")
    commit(path, {**skills("one", "two", "three", "four"), "one/more.md": "More.\n"})
    assert again(env, followed).submitted == 0
    work_off(env)
    assert not SkillEntry.objects.filter(slug="four").exists()


def test_a_damaged_entry_is_rebuilt_for_whom_it_was(env: WorkerEnv, tmp_path: Path) -> None:
    mate = program(env, "mate", "hr")
    submission = submit(mate, repository(tmp_path, skills("one")), "hr").json()["id"]
    damage(env, submission)
    assert run("verify_store", "--repair").code in (0, 2)
    assert read_submission(env, submission).text("audience") == team(env, "hr")
    async_to_sync(drain)(env)
    assert SkillEntry.objects.get().audience == team(env, "hr")


def test_who_has_left_the_team_and_whose_team_is_gone_see_nothing_more_of_it(env: WorkerEnv, tmp_path: Path) -> None:
    mate = program(env, "mate", "hr")
    submission = submit(mate, repository(tmp_path, skills("one")), "hr").json()["id"]
    remove_members(env, "hr", ["mate"])
    assert seen(mate, submission) == [False] * 4
    add_members(env, "hr", ["mate"])
    assert seen(mate, submission) == [True] * 4
    delete_team(env, "hr")
    create_team(env, "hr")
    add_members(env, "hr", ["mate"])
    assert seen(mate, submission) == [False] * 4
    async_to_sync(drain)(env)
    assert mate.get("/skills/one").status_code == 404


def test_a_submission_without_a_choice_is_written_as_before(env: WorkerEnv, tmp_path: Path) -> None:
    [answer] = async_to_sync(submitted)(env, repository(tmp_path, skills("one")))
    assert answer.submission is not None
    assert "audience" not in answer.submission.value
    assert SubmissionEntry.objects.get().audience is None


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        (PUBLIC, PUBLIC, PUBLIC),
        (PUBLIC, MEMBERS, MEMBERS),
        (MEMBERS, "team:1", "team:1"),
        ("team:1", "team:1", "team:1"),
        ("team:1", "team:2", None),
    ],
)
def test_the_narrower_of_two_audiences_is_within_both(one: str, other: str, found: str | None) -> None:
    assert narrower(one, other) == narrower(other, one) == found
    assert is_within(one, other) == (found == one)
