"""What happens is written into the outbox with what causes it, once, and reaches those who may hear of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.db import transaction
from django.test import Client
from pytest_django.fixtures import Settings

from marketplace.catalog import quarantine_skill, restore, yank_version
from marketplace.flags import FlagKind, clear, flag
from marketplace.models import SkillEntry, SkillVersion
from marketplace.skills.audience import show_to
from submissions.discovery import DiscoveredSkill, Discovery
from submissions.intake import accept_one
from submissions.notification_models import NotificationDelivery, NotificationEvent
from submissions.notifications.audience import listeners
from submissions.notifications.errors import SubscriptionRefused
from submissions.notifications.fan_out import fan_out
from submissions.notifications.subscriptions import Scope, Way, Wish, add, add_webhook, remove
from submissions.outbox import TOLD, Kind
from submissions.rescan.record import record
from submissions.states import FINAL_STATES, State
from submissions.store.batched_transitions import move
from submissions.store.records import Submission
from submissions.store.transitions import Step, transition
from submissions.verification.verdict import Decision, Verdict
from tests.marketplace.factories import publish_example
from tests.submissions.factories import make_submission
from tests.submissions.notifications.told import end, person, run_deliver
from vskill.accounts.audiences import MEMBERS, PUBLIC, team_audience
from vskill.environments import WorkerEnv, get_environment
from vskill.kv.threads import writers
from vskill.models import Team

pytestmark = pytest.mark.django_db(transaction=True)
URL = "https://hooks.example.org/in"


def submit_as(env: WorkerEnv, account: Any) -> Submission:
    """Submit a skill for an account, or for a stranger, by the way in that everybody uses, and let it be held."""
    name = account.get_username() if account is not None else ""
    skill = DiscoveredSkill("", f"of-{name or 'nobody'}", "It does.", (), "d" * 64)
    discovery = Discovery(f"https://github.com/acme/of-{name or 'nobody'}", "a" * 40, (skill,), "main")
    accepted = accept_one(env, discovery, skill, source="api", actor="api", submitter=name)
    assert accepted.submission is not None
    scanning = transition(env, accepted.submission, State.TIER1_SCANNING, reason="", actor="test", trigger="test")
    return transition(env, scanning, State.ON_HOLD, reason="Two findings.", actor="test", trigger="test")


def kinds() -> list[str]:
    return list(NotificationEvent.objects.order_by("id").values_list("kind", flat=True))


def test_every_end_of_a_submission_is_told() -> None:
    assert set(TOLD) == FINAL_STATES


def test_what_is_told_is_written_with_the_transition_or_not_at_all(env: WorkerEnv) -> None:
    held = end(env, repoUrl="https://github.com/acme/skills", submitterAccount="ada")
    [event] = NotificationEvent.objects.all()
    assert (event.kind, event.source, event.publisher) == (Kind.HELD, f"{held.id}:{held.version}", "github.com/acme")
    assert event.submitter == "ada"
    assert event.data["reason"] == "Two findings."
    with transaction.atomic():
        end(env)
        transaction.set_rollback(True)
    assert kinds() == ["held"]


async def test_steps_that_share_a_transaction_are_told_one_by_one(env: WorkerEnv) -> None:
    def make() -> list[Any]:
        return [make_submission(env, State.TIER1_SCANNING, submitterAccount=f"p{number}") for number in range(4)]

    some = await writers.run(make)
    goals = [State.ON_HOLD, State.REJECTED, State.TIER2_SCANNING, State.TIER1_FAILED]
    await asyncio.gather(
        *(move(env, Step(one, goal, "because", "test", "test")) for one, goal in zip(some, goals, strict=True))
    )
    told = {event.submission_id: event.kind async for event in NotificationEvent.objects.all()}
    assert told == {some[0].id: "held", some[1].id: "refused", some[3].id: "refused"}


def test_withdrawals_and_flags_are_told_and_restoring_is_not(env: WorkerEnv) -> None:
    publish_example(env)
    slug = SkillEntry.objects.get().record.slug
    flag(env, slug, FlagKind.REPORT, "It sends keys away.", actor="op")
    clear(env, slug, FlagKind.REPORT, actor="op", reason="It does not.")
    quarantine_skill(env, slug, actor="op", reason="look at it")
    restore(env, slug, actor="op", reason="fine")
    yank_version(env, slug, SkillVersion.objects.get().version, actor="op", reason="broken")
    assert kinds() == ["verdict_changed", "verdict_changed", "withdrawn", "withdrawn"]
    first = NotificationEvent.objects.order_by("id")[0]
    assert (first.data["slug"], first.data["reason"]) == (slug, "It sends keys away.")


def test_a_later_scan_with_another_verdict_is_told_once_with_both_verdicts(env: WorkerEnv) -> None:
    publish_example(env)
    version = SkillVersion.objects.select_related("skill").get()
    worse = Decision(Verdict.HELD, "Held.", ("It reads keys.",), (), "0" * 16)
    for _again in range(2):
        assert record(env, version, "k" * 32, worse, []).flagged
    [event] = NotificationEvent.objects.all()
    assert event.kind == Kind.VERDICT_CHANGED
    assert (event.data["verdictBefore"], event.data["verdict"]) == (version.verdict, "held")


class TestAudience:
    def test_what_was_held_is_told_to_its_submitter_and_to_reviewers_alone(self, env: WorkerEnv) -> None:
        people = [person("ada"), person("bob"), person("rita", "reviewer"), person("eve", "viewer")]
        for one in people:
            add_webhook(env, f"{URL}/{one.username}", Wish(list(Kind)), created_by=one.username, owner=one)
        add_webhook(env, URL, Wish(list(Kind)), created_by="root")
        end(env, submitterAccount="ada")
        held = NotificationEvent.objects.get()
        assert {one.owner for one in listeners(env, held)} == {"", "ada", "rita"}
        people[2].is_active = False
        people[2].save()
        assert {one.owner for one in listeners(env, held)} == {"", "ada"}
        end(env, State.REJECTED, submitterAccount="visitor")
        refused = NotificationEvent.objects.get(kind=Kind.REFUSED)
        assert {one.owner for one in listeners(env, refused)} == {""}

    def test_of_what_was_submitted_for_a_team_hears_nobody_else_not_even_who_submitted_it(self, env: WorkerEnv) -> None:
        ada, judge = person("ada", "submitter"), person("judge", "reviewer")
        hr = Team.objects.create(environment=env.name, name="hr")
        for one in (ada, judge):
            add_webhook(env, f"{URL}/{one.username}", Wish(list(Kind)), created_by=one.username, owner=one)
        end(env, submitterAccount="ada", audience=team_audience(hr.pk))
        event = NotificationEvent.objects.get()
        assert [one.owner for one in listeners(env, event)] == ["judge"]
        hr.members.add(ada)
        assert {one.owner for one in listeners(env, event)} == {"ada", "judge"}

    def test_who_may_not_read_a_closed_registry_hears_nothing_more(self, env: WorkerEnv, settings: Settings) -> None:
        settings.VSKILL_ENVIRONMENTS = {"default": {"hosts": ["*"], "policy": {"access": "closed"}}}
        closed = get_environment("default")
        ada = person("ada", "viewer")
        add_webhook(closed, URL, Wish([Kind.HELD], Scope.OWN), created_by="ada", owner=ada)
        end(closed, submitterAccount="ada")
        event = NotificationEvent.objects.get()
        assert len(listeners(closed, event)) == 1
        ada.role_grants.all().delete()
        assert listeners(closed, event) == []

    def test_of_a_private_skill_hears_who_may_see_it_now(self, env: WorkerEnv) -> None:
        mate, other = person("mate", "viewer"), person("other", "viewer")
        person("nobody", "")
        hr = Team.objects.create(environment=env.name, name="hr")
        hr.members.add(mate)
        for one in get_user_model()._default_manager.all():
            add_webhook(env, URL, Wish(list(Kind)), created_by=one.username, owner=one)
        publish_example(env, name="salaries", audience=team_audience(hr.pk))
        yank_version(env, "salaries", "0.0.1", actor="op", reason="old")
        event = NotificationEvent.objects.get()
        assert [one.owner for one in listeners(env, event)] == ["mate"]
        hr.members.set([other])
        assert [one.owner for one in listeners(env, event)] == ["other"]
        show_to(env, "salaries", MEMBERS, actor="op", reason="for all of us")
        assert {one.owner for one in listeners(env, event)} == {"mate", "other"}
        show_to(env, "salaries", PUBLIC, actor="op", reason="for everybody")
        assert {one.owner for one in listeners(env, event)} == {"mate", "other", "nobody"}

    def test_who_takes_the_name_of_an_account_that_is_gone_hears_nothing_of_its_submissions(
        self, env: WorkerEnv
    ) -> None:
        publish_example(env, submission_id=submit_as(env, person("ada")).id)
        get_user_model()._default_manager.get(username="ada").delete()
        new = person("ada")
        for number, scope in enumerate((Scope.OWN, Scope.EVERYTHING)):
            add_webhook(env, f"{URL}/{number}", Wish(list(Kind), scope), created_by="ada", owner=new)
        add(env, Way.FEED, Wish(list(Kind), Scope.OWN), owner=new)
        quarantine_skill(env, SkillEntry.objects.get().record.slug, actor="op", reason="look at it")
        fan_out(env)
        held, withdrawn = NotificationEvent.objects.order_by("id")
        assert held.submitter == withdrawn.submitter == "ada"
        assert {one.scope for one in listeners(env, withdrawn)} == {Scope.EVERYTHING}
        assert listeners(env, held) == []
        client = Client()
        client.force_login(new)
        assert "<entry>" not in client.get("/feeds/notifications.atom").content.decode()

    def test_what_an_account_submits_is_its_own(self, env: WorkerEnv) -> None:
        ada = person("ada")
        add_webhook(env, URL, Wish(list(Kind), Scope.OWN), created_by="ada", owner=ada)
        submit_as(env, ada)
        submit_as(env, person("bob"))
        submit_as(env, None)
        found = NotificationEvent.objects.order_by("id")
        assert [len(listeners(env, one)) for one in found] == [1, 0, 0]

    def test_scopes_and_kinds_narrow_down_what_is_told(self, env: WorkerEnv) -> None:
        people = [person(name, "reviewer") for name in ("ada", "rita")]
        publish_example(env, name="notes", repo_url="https://github.com/acme/notes")
        skill = SkillEntry.objects.get()
        chosen = [
            Wish([Kind.HELD]),
            Wish([Kind.REFUSED]),
            Wish([Kind.HELD], Scope.OWN),
            Wish([Kind.HELD], Scope.PUBLISHER, "github.com/acme"),
            Wish([Kind.HELD], Scope.PUBLISHER, "https://github.com/other/"),
            Wish([Kind.HELD], Scope.SKILL, skill.record.slug),
        ]
        for number, wish in enumerate(chosen):
            owner = people[number % 2]
            add_webhook(env, f"{URL}/{number}", wish, created_by=owner.username, owner=owner)
        end(env, repoUrl="https://github.com/acme/notes", identity=skill.identity, submitterAccount="bob")
        told = {one.url.rpartition("/")[2] for one in listeners(env, NotificationEvent.objects.get())}
        assert told == {"0", "3", "5"}

    def test_a_removed_subscription_hears_nothing_and_its_secret_is_gone(self, env: WorkerEnv) -> None:
        made, _secret = add_webhook(env, URL, Wish(list(Kind)), created_by="root")
        end(env)
        run_deliver(env, limit=0)
        assert remove(env, made, actor="root")
        made.refresh_from_db()
        assert (made.secret, NotificationDelivery.objects.get().state) == ("", "failed")
        end(env)
        assert run_deliver(env, limit=0).made == 0

    def test_whose_skill_was_withdrawn_is_known_by_the_submission_that_published_it(self, env: WorkerEnv) -> None:
        ada = person("ada")
        one = end(env, State.REJECTED, submitterAccount="ada")
        publish_example(env, submission_id=one.id)
        slug = SkillEntry.objects.get().record.slug
        add_webhook(env, URL, Wish([Kind.WITHDRAWN], Scope.OWN), created_by="ada", owner=ada)
        quarantine_skill(env, slug, actor="op", reason="look at it")
        assert run_deliver(env, limit=0).made == 1
        assert NotificationEvent.objects.get(kind=Kind.WITHDRAWN).submitter == "ada"


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.org/in",
        "https://127.0.0.1/in",
        "https://2130706433/in",
        "https://169.254.169.254/latest",
        "https://[::1]/in",
        "https://user:word@hooks.example.org/in",
        "https://intranet/in",
        "https://hooks.example.org/a b",
        "https://hooks.example.org/#x",
        "ftp://hooks.example.org/",
        "",
        "https://[::1",
        "https://hooks.example.org/" + "a" * 1000,
    ],
)
def test_a_webhook_does_not_go_to(env: WorkerEnv, url: str) -> None:
    with pytest.raises(SubscriptionRefused, match="Nothing was made"):
        add_webhook(env, url, Wish(list(Kind)), created_by="root")


def test_an_account_has_five_webhooks_and_fifty_subscriptions_at_most_and_each_once(env: WorkerEnv) -> None:
    ada = person("ada")
    for number in range(5):
        add_webhook(env, f"{URL}/{number}", Wish(list(Kind)), created_by="ada", owner=ada)
        add_webhook(env, f"{URL}/{number}", Wish(list(Kind)), created_by="root")
    with pytest.raises(SubscriptionRefused, match="5 webhooks already"):
        add_webhook(env, f"{URL}/x", Wish(list(Kind)), created_by="ada", owner=ada)
    add_webhook(env, f"{URL}/x", Wish(list(Kind)), created_by="root")
    for number in range(45):
        add(env, Way.FEED, Wish(list(Kind), Scope.PUBLISHER, f"github.com/{number}"), owner=ada)
    with pytest.raises(SubscriptionRefused, match="50 subscriptions already"):
        add(env, Way.FEED, Wish(list(Kind)), owner=ada)
    bob = person("bob")
    add_webhook(env, URL, Wish(list(Kind)), created_by="bob", owner=bob)
    with pytest.raises(SubscriptionRefused, match="such a subscription"):
        add_webhook(env, URL, Wish([Kind.HELD]), created_by="bob", owner=bob)


def test_an_event_is_told_to_nobody_twice_by_two_that_fan_out_at_once(env: WorkerEnv) -> None:
    add_webhook(env, URL, Wish(list(Kind)), created_by="root")
    for _number in range(20):
        end(env)

    async def both() -> list[tuple[int, int]]:
        return list(await asyncio.gather(*(writers.run(fan_out, env) for _ in range(4))))

    done = async_to_sync(both)()
    assert sum(events for events, _ in done) == sum(made for _, made in done) == 20
    assert NotificationDelivery.objects.count() == 20
