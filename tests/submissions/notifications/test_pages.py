"""A person chooses what to hear of and how, sees it, and ends it; nobody else does."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from pytest_django.fixtures import Settings
from standardwebhooks import Webhook

from marketplace.catalog import yank_version
from marketplace.models import SkillEntry
from submissions.notification_models import NotificationPreference, NotificationSubscription
from submissions.notifications.subscriptions import Way, Wish, add, add_webhook, disable
from submissions.outbox import Kind
from tests.marketplace.factories import publish_example
from tests.page_text import without_inline_tags
from tests.submissions.factories import make_submission
from tests.submissions.notifications.receiver import receiver
from tests.submissions.notifications.told import end, person, run_deliver
from tests.submissions.source.connect_proxy import connect_proxy
from tests.submissions.source.https_host import CERTIFICATE
from vskill.access_tokens.scopes import Scope
from vskill.access_tokens.tokens import make_token
from vskill.accounts.audiences import MEMBERS
from vskill.environments import WorkerEnv, get_environment

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = "/account/notifications"
URL = "https://hooks.example.org/in"
ADD = {"do": "add", "way": "webhook", "scope": "everything", "kind": ["held", "refused"], "url": URL}


@pytest.fixture
def ada(client: Client) -> Any:
    made = person("ada")
    client.force_login(made)
    return made


def test_a_stranger_and_a_token_are_led_to_the_sign_in(env: WorkerEnv, client: Client) -> None:
    token = make_token(env, person("bob"), name="x", scopes=[Scope.READ])[1]
    bearer: Any = {"Authorization": f"Bearer {token}"}
    for answer in (client.get(PAGE), client.post(PAGE, ADD), client.post(PAGE, ADD, headers=bearer)):
        assert answer.status_code == 302
        assert answer["Location"].startswith("/sign-in?next=")
    assert not NotificationSubscription.objects.exists()


def test_a_webhook_is_made_its_secret_shown_once_and_it_is_told_what_its_owner_may_see(
    settings: Settings, client: Client, ada: Any
) -> None:
    # The proxy is the only way out, and knows where the public name leads to.
    with receiver() as hook, connect_proxy() as proxy:
        policy = {"source_ca_file": str(CERTIFICATE), "source_proxy": proxy.url}
        settings.VSKILL_ENVIRONMENTS = {"default": {"hosts": ["*"], "policy": policy}}
        env = get_environment("default")
        made = client.post(PAGE, {**ADD, "url": f"https://git.test.example:{hook.port}/hook"})
        assert made["Cache-Control"] == "no-store"
        [secret] = set(re.findall(r"whsec_[A-Za-z0-9+/=]{40,}", made.content.decode()))
        assert secret not in client.get(PAGE).content.decode()
        end(env, submitterAccount="ada")
        end(env, submitterAccount="bob")
        assert run_deliver(env).delivered == 1
        [taken] = hook.taken
        assert Webhook(secret).verify(taken.body, taken.headers)["type"] == "submission.held"
        assert taken.headers["webhook-id"] in client.get(PAGE).content.decode()


def test_what_is_shown_and_changed_is_ones_own(env: WorkerEnv, client: Client, ada: Any) -> None:
    of_bob = add_webhook(env, f"{URL}/bob", Wish(list(Kind)), created_by="bob", owner=person("bob"))[0]
    of_operators = add_webhook(env, f"{URL}/operators", Wish(list(Kind)), created_by="root")[0]
    shown = client.get(PAGE).content.decode()
    assert f"{URL}/bob" not in shown
    assert f"{URL}/operators" not in shown
    for number in (of_bob.pk, of_operators.pk, 0, "\u00b2", ""):
        for do in ("remove", "enable"):
            assert client.post(PAGE, {"do": do, "id": number}).status_code == 400
    assert NotificationSubscription.objects.filter(removed_at=None).count() == 2
    client.post(PAGE, ADD)
    [own] = NotificationSubscription.objects.filter(owner="ada")
    disable(env, own, "it failed for days")
    assert "disabled: it failed for days" in client.get(PAGE).content.decode()
    assert client.post(PAGE, {"do": "enable", "id": own.pk}).status_code == 302
    assert client.post(PAGE, {"do": "remove", "id": own.pk}).status_code == 302
    assert "in order" not in client.get(PAGE).content.decode()


def test_a_skill_and_a_publisher_are_chosen_by_what_people_call_them(env: WorkerEnv, client: Client, ada: Any) -> None:
    publish_example(env)
    slug = SkillEntry.objects.get().record.slug
    for scope, of in (("skill", slug), ("publisher", "https://github.com/acme/")):
        assert client.post(PAGE, {**ADD, "way": "feed", "scope": scope, "of": of}).status_code == 302
    shown = client.get(PAGE).content.decode()
    assert slug in shown
    assert "github.com/acme" in shown


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"kind": []}, "Choose among these events"),
        ({"kind": ["held", "root"]}, "Choose among these events"),
        ({"scope": "root"}, "Choose what you want"),
        ({"scope": "skill", "of": "none-such"}, "no published skill"),
        ({"scope": "publisher", "of": "acme"}, "host/owner"),
        ({"way": "pigeon"}, "Choose how"),
        ({"way": "mail"}, "Confirm an address"),
        ({"url": "https://169.254.169.254/"}, "not on the public internet"),
        ({"do": "address", "address": "x"}, "no address"),
        ({"do": "address", "address": "a@example.org"}, "sends no mails"),
        ({"do": "rhythm", "rhythm": "hourly"}, "Choose one of"),
        ({"do": "everything"}, "cannot be done"),
    ],
)
def test_what_cannot_be_done_is_said_beside_the_form(
    env: WorkerEnv, client: Client, ada: Any, given: dict[str, Any], said: str
) -> None:
    answer = client.post(PAGE, {**ADD, **given})
    assert answer.status_code == 400
    assert said in answer.content.decode()
    assert not NotificationSubscription.objects.exists()


def test_the_page_of_a_submission_offers_it_where_people_sign_in(settings: Settings) -> None:
    for access, offered in (("open", False), ("read-only", True)):
        settings.VSKILL_ENVIRONMENTS = {"default": {"hosts": ["*"], "policy": {"access": access}}}
        one = make_submission(get_environment("default"))
        assert (PAGE in Client().get(f"/submissions/{one.id}").content.decode()) is offered


class TestFeed:
    @pytest.fixture
    def told(self, env: WorkerEnv) -> dict[str, str]:
        """Return the ids of a held submission of ada, and of one of somebody else."""
        accounts = get_user_model()._default_manager
        for name in ("ada", "bob"):
            if not accounts.filter(username=name).exists():
                person(name)
        return {name: end(env, submitterAccount=name, skillName=f"of-{name}").id for name in ("ada", "bob")}

    def test_a_token_reads_the_own_ones_and_a_reviewer_all(self, env: WorkerEnv, told: dict[str, str]) -> None:
        known = get_user_model()._default_manager
        person("rita", "reviewer")
        person("eve", "")
        for name, hears in (("ada", {"ada"}), ("rita", {"ada", "bob"}), ("eve", set())):
            token = make_token(env, known.get(username=name), name="x", scopes=[Scope.READ])[1]
            answer = Client().get("/feeds/notifications.atom", headers={"Authorization": f"Bearer {token}"})
            assert answer["Content-Type"].startswith("application/atom+xml")
            assert answer["Cache-Control"] == "private, no-cache"
            assert "Access-Control-Allow-Origin" not in answer
            shown = answer.content.decode()
            assert {one for one in told if f"/submissions/{told[one]}" in shown} == hears, name

    def test_a_token_that_was_not_made_for_reading_reads_no_feed(self, env: WorkerEnv, told: dict[str, str]) -> None:
        mate = person("mate")
        publish_example(env, name="salaries", audience=MEMBERS)
        yank_version(env, "salaries", "0.0.1", actor="op", reason="old")
        add(env, Way.FEED, Wish(list(Kind)), owner=mate)
        statuses = {}
        for scope in Scope:
            token = make_token(env, mate, name=scope.value, scopes=[scope])[1]
            answer = Client().get("/feeds/notifications.atom", headers={"Authorization": f"Bearer {token}"})
            statuses[scope] = answer.status_code
            assert ("salaries" in answer.content.decode()) is (scope is Scope.READ)
        assert statuses == {scope: 200 if scope is Scope.READ else 403 for scope in Scope}

    def test_nobody_reads_a_feed_without_a_proof(self, told: dict[str, str]) -> None:
        assert Client().get("/feeds/notifications.atom").status_code == 401
        assert Client().get("/feeds/notifications/guessed.atom").status_code == 404
        assert Client().get("/feeds/notifications/.atom").status_code == 404

    def test_the_secret_address_is_shown_once_and_ends_when_its_owner_says_so(
        self, env: WorkerEnv, client: Client, ada: Any, told: dict[str, str]
    ) -> None:
        def new_address() -> str:
            shown = without_inline_tags(client.post(PAGE, {"do": "feed"}).content.decode())
            [path] = set(re.findall(r"/feeds/notifications/[\w-]{40,}\.atom", shown))
            return str(path)

        first = new_address()
        assert first not in client.get(PAGE).content.decode()
        assert first.split("/")[-1][:20] not in str(list(NotificationPreference.objects.values()))
        answer = Client().get(first)
        assert "Held for review: of-ada" in answer.content.decode()
        assert "of-bob" not in answer.content.decode()
        assert first not in answer.content.decode()
        assert Client().get(first, headers={"If-None-Match": answer["ETag"]}).status_code == 304
        second = new_address()
        assert [Client().get(path).status_code for path in (first, second)] == [404, 200]
        ada.is_active = False
        ada.save()
        assert Client().get(second).status_code == 404
        ada.is_active = True
        ada.save()
        client.force_login(ada)
        client.post(PAGE, {"do": "end-feed"})
        assert Client().get(second).status_code == 404

    def test_what_was_chosen_narrows_it_down_and_text_of_authors_is_escaped(
        self, env: WorkerEnv, client: Client, ada: Any
    ) -> None:
        end(env, submitterAccount="ada", skillName="<script>x</script>", repoUrl="https://github.com/acme/one")
        end(env, submitterAccount="ada", skillName="elsewhere", repoUrl="https://github.com/other/one")
        client.post(PAGE, {**ADD, "way": "feed", "scope": "publisher", "of": "github.com/acme"})
        shown = client.get("/feeds/notifications.atom").content.decode()
        assert "&lt;script&gt;" in shown
        assert "<script>" not in shown
        assert "elsewhere" not in shown
