"""An account changes its password, or chooses another by the link of a mail; nobody learns whose there are."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from submissions.notifications.password_mails import send_password_mails
from tests.submissions.notifications.mail_server import MailServer, mail_server
from tests.submissions.notifications.told import person, run_deliver
from vskill.access_tokens.scopes import Scope
from vskill.access_tokens.tokens import make_token
from vskill.environments import WorkerEnv, get_environment
from vskill.kv.clock import database_now
from vskill.models import PasswordRequest, StaffLimit
from vskill.sign_in.forgotten import MOST_WAITING

pytestmark = pytest.mark.django_db(transaction=True)

OLD: Final = "the one of the winter"
NEW: Final = "the one of the summer"
PAGE: Final = "/account/password"
FORGOTTEN: Final = "/sign-in/forgotten"


def account(name: str = "ada", **columns: Any) -> Any:
    return person(name, password=OLD, **{"email": f"{name}@example.org", **columns})


def session_of(name: str = "ada", password: str = OLD) -> Client:
    """Return the browser of somebody who signed in by the form."""
    client = Client()
    assert client.post("/sign-in", {"username": name, "password": password}).status_code == 302
    return client


def change(client: Client, old: str = OLD, new: str = NEW, again: str | None = None) -> Any:
    given = {"old_password": old, "new_password1": new, "new_password2": new if again is None else again}
    return client.post(PAGE, given)


def signs_in(password: str, name: str = "ada") -> bool:
    return Client().post("/sign-in", {"username": name, "password": password}).status_code == 302


class TestChange:
    def test_a_member_changes_it_and_every_other_session_ends(self, caplog: pytest.LogCaptureFixture) -> None:
        account()
        here, elsewhere = session_of(), session_of()
        assert PAGE in here.get("/account").content.decode()
        caplog.set_level(logging.INFO)
        changed = change(here)
        assert (changed.status_code, changed["Location"]) == (302, "/account")
        assert "Your password is changed" in here.get("/account").content.decode()
        assert elsewhere.get("/account").status_code == 302
        assert (signs_in(OLD), signs_in(NEW)) == (False, True)
        assert "the password of ada was changed" in caplog.text
        assert NEW not in caplog.text

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"old": "wrong"}, "old password was entered incorrectly"),
            ({"new": "short"}, "at least 12 characters"),
            ({"new": "qwertyqwerty"}, "too common"),
            ({"again": "another one of the summer"}, "match"),
            ({"new": ""}, "required"),
        ],
    )
    def test_what_is_wrong_is_said_beside_its_field_and_nothing_changes(
        self, given: dict[str, str], said: str, settings: Settings
    ) -> None:
        account()
        client = session_of()
        answer = change(client, **given)
        text = answer.content.decode()
        assert answer.status_code == 200
        assert said in text
        assert "aria-invalid" in text
        assert OLD not in text
        assert NEW not in text
        assert signs_in(OLD)
        assert client.get("/account").status_code == 200

    def test_guesses_of_the_present_one_have_to_wait_and_failed_logins_of_strangers_keep_nobody_from_it(self) -> None:
        account()
        client = session_of()
        for _guess in range(30):
            Client().post("/sign-in", {"username": "ada", "password": "guess"}, REMOTE_ADDR="192.0.2.7")
        # What is wrong with the new one is no guess.
        assert {change(client, new="short").status_code for _ in range(9)} == {200}
        statuses = [change(client, old=f"guess {number}").status_code for number in range(9)]
        assert statuses[0] == 200
        assert statuses[-1] == 429
        waits = change(client)
        assert waits.status_code == 429
        assert int(waits["Retry-After"]) > 0
        assert "nothing was changed" in waits.content.decode()
        assert signs_in(OLD)

    def test_only_whoever_is_signed_in_by_a_session_of_this_origin_changes_it(self, env: WorkerEnv) -> None:
        ada = account()
        token = make_token(env, ada, name="x", scopes=list(Scope))[1]
        assert Client().get(PAGE)["Location"] == f"/sign-in?next={PAGE}"
        given = {"old_password": OLD, "new_password1": NEW, "new_password2": NEW}
        for client, headers in (
            (Client(), {}),
            (Client(), {"Authorization": f"Bearer {token}"}),
            (session_of(), {"Authorization": f"Bearer {token}"}),
            (session_of(), {"Origin": "https://evil.test"}),
        ):
            answer = client.post(PAGE, given, headers=headers)
            assert answer.status_code == 302
            assert answer["Location"].startswith("/sign-in?next=")
        strict = Client(enforce_csrf_checks=True)
        strict.force_login(ada)
        assert strict.post(PAGE, given).status_code == 403
        assert signs_in(OLD)

    def test_whoever_signs_in_by_a_provider_has_none_to_change(self) -> None:
        made = person("ada@github")
        made.set_unusable_password()
        made.save()
        client = Client()
        client.force_login(made)
        assert PAGE not in client.get("/account").content.decode()
        assert "with a provider" in client.get(PAGE).content.decode()
        assert change(client).status_code == 400
        made.refresh_from_db()
        assert not made.has_usable_password()


class TestForgotten:
    @pytest.fixture
    def post(self, settings: Settings) -> Iterator[MailServer]:
        with mail_server() as one:
            settings.MAIL_SERVER, settings.MAIL_FROM = one.options, "vskill@example.net"
            yield one

    def link_in(self, post: MailServer, env: WorkerEnv) -> str:
        found = re.search(rf"{env.public_url}(/sign-in/new-password/\S+)", post.taken[-1].get_content())
        assert found is not None
        return found[1]

    @pytest.mark.parametrize("typed", ["ada", "ADA", " ada@example.org ", "Ada@Example.org"])
    def test_a_link_comes_by_mail_and_another_password_is_chosen_once(
        self, env: WorkerEnv, post: MailServer, typed: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        ada = account()
        elsewhere = session_of()
        assert FORGOTTEN in Client().get("/sign-in").content.decode()
        client = Client()
        assert client.post(FORGOTTEN, {"account": typed}).status_code == 200
        # The web server sends nothing.
        assert post.taken == []
        assert run_deliver(env).mails == 1
        assert (post.taken[0]["To"], post.taken[0]["From"]) == ("ada@example.org", "vskill@example.net")
        link = self.link_in(post, env)
        assert link not in caplog.text
        led = client.get(link)
        assert led.status_code == 302
        # The secret is not in the address of the page that is shown.
        shown = client.get(led["Location"])
        assert link.rsplit("/", 1)[1] not in led["Location"]
        assert shown.status_code == 200
        assert "no-store" in shown["Cache-Control"]
        short = client.post(led["Location"], {"new_password1": "short", "new_password2": "short"})
        assert "at least 12 characters" in short.content.decode()
        ada.refresh_from_db()
        assert ada.check_password(OLD)
        chosen = client.post(led["Location"], {"new_password1": NEW, "new_password2": NEW})
        assert (chosen.status_code, chosen["Location"]) == (302, "/sign-in")
        assert "Sign in with it" in client.get("/sign-in").content.decode()
        # Nobody is signed in by it, and whoever was is no more.
        assert client.get("/account").status_code == 302
        assert elsewhere.get("/account").status_code == 302
        assert (signs_in(OLD), signs_in(NEW)) == (False, True)
        again = Client().get(link)
        assert "not valid, or no longer" in again.content.decode()

    def test_the_answer_is_the_same_whether_there_is_such_an_account_or_not(
        self, env: WorkerEnv, post: MailServer
    ) -> None:
        account()
        answers, asked = [], set()
        for typed in ("ada", "nobody", "ada@example.org", "nobody@example.org"):
            with CaptureQueriesContext(connection) as queries:
                answer = Client().post(FORGOTTEN, {"account": typed})
            asked.add(tuple(re.sub(r"'[^']*'|\d+", "", one["sql"]) for one in queries))
            text = re.sub(r'nonce="[^"]*"|value="[^"]{64}"', "", answer.content.decode())
            answers.append((answer.status_code, text))
        assert len(set(answers)) == 1
        # And it takes the same time: what was typed is looked up nowhere.
        assert len(asked) == 1
        assert not any("auth_user" in sql for sql in asked.pop())

    @pytest.mark.parametrize("why", ["nobody", "inactive", "provider", "no address", "bad address", "elsewhere"])
    def test_nothing_is_sent_to_whom_it_does_not_concern(self, env: WorkerEnv, post: MailServer, why: str) -> None:
        ada = account()
        if why == "nobody":
            ada.delete()
        elif why == "inactive":
            ada.is_active = False
        elif why == "provider":
            ada.set_unusable_password()
        elif why in ("no address", "bad address"):
            ada.email = "" if why == "no address" else "ada@example.org\nBcc: eve@example.org"
        else:
            StaffLimit.objects.create(user=ada, environments=["another"])
        if why != "nobody":
            ada.save()
        Client().post(FORGOTTEN, {"account": "ada"})
        assert run_deliver(env).mails == 0
        assert post.taken == []

    def test_one_mail_comes_in_ten_minutes_however_often_it_is_asked_for(
        self, env: WorkerEnv, post: MailServer
    ) -> None:
        account()
        for _time in range(3):
            Client().post(FORGOTTEN, {"account": "ada"})
            run_deliver(env)
        assert len(post.taken) == 1
        PasswordRequest.objects.update(sent_at=F("sent_at") - timedelta(minutes=11))
        run_deliver(env)
        Client().post(FORGOTTEN, {"account": "ada"})
        run_deliver(env)
        assert len(post.taken) == 2

    def test_other_letters_that_a_database_takes_for_those_of_a_name_bring_no_more_mails(
        self, env: WorkerEnv, post: MailServer
    ) -> None:
        account("ask")
        for typed in ("a\u017fk", "as\u212a", "a\u017fk@example.org", "ask@example.org", "ASK"):
            Client().post(FORGOTTEN, {"account": typed})
        run_deliver(env)
        # By the name, which one of them is in lower case too, and by the address.
        assert len(post.taken) == 2

    def test_a_mail_server_that_refuses_is_asked_again_and_not_for_ever(self, env: WorkerEnv, post: MailServer) -> None:
        account()
        Client().post(FORGOTTEN, {"account": "ada"})
        post.refuses = "450 later"
        for _try in range(5):
            assert send_password_mails(env) == 0
            assert send_password_mails(env) == 0
            PasswordRequest.objects.update(due_at=F("due_at") - timedelta(minutes=3))
        assert send_password_mails(env) == 0
        assert not PasswordRequest.objects.exists()
        Client().post(FORGOTTEN, {"account": "ada"})
        send_password_mails(env)
        post.refuses = ""
        PasswordRequest.objects.update(due_at=F("due_at") - timedelta(minutes=3))
        assert send_password_mails(env) == 1

    def test_a_link_ends_with_its_hour_with_the_password_and_for_another_account(
        self, env: WorkerEnv, post: MailServer
    ) -> None:
        account()
        account("bob")
        for name in ("ada", "bob"):
            Client().post(FORGOTTEN, {"account": name})
        run_deliver(env)
        links = {one["To"]: one.get_content().split("/sign-in/new-password/")[1].split()[0] for one in post.taken}
        number, token = links["ada@example.org"].split("/")
        other = links["bob@example.org"].split("/")[0]
        for path in (f"{other}/{token}", f"{number}/x", "x/y", f"{number}/set-password"):
            assert "not valid" in Client().get(f"/sign-in/new-password/{path}").content.decode(), path
        with override_settings(PASSWORD_RESET_TIMEOUT=-1):
            assert "not valid" in Client().get(f"/sign-in/new-password/{number}/{token}").content.decode()
        assert Client().get(f"/sign-in/new-password/{number}/{token}").status_code == 302
        change(session_of())
        assert "not valid" in Client().get(f"/sign-in/new-password/{number}/{token}").content.decode()

    def test_another_host_in_the_request_is_not_in_the_mail(self, post: MailServer, settings: Settings) -> None:
        settings.VSKILL_ENVIRONMENTS = {"default": {"hosts": ["*"], "public_url": "https://skills.example.net"}}
        account()
        assert Client().post(FORGOTTEN, {"account": "ada"}, HTTP_HOST="localhost:99").status_code == 200
        run_deliver(get_environment("default"))
        assert "https://skills.example.net/sign-in/new-password/" in post.taken[0].get_content()
        assert "localhost:99" not in post.taken[0].as_string()

    def test_too_many_that_wait_are_refused_and_nothing_is_noted(self, env: WorkerEnv, post: MailServer) -> None:
        now = database_now("default")
        PasswordRequest.objects.bulk_create(
            PasswordRequest(environment=env.name, typed=f"x{number}", due_at=now) for number in range(MOST_WAITING)
        )
        refused = Client().post(FORGOTTEN, {"account": "ada"})
        assert (refused.status_code, refused["Retry-After"]) == (429, "60")
        assert PasswordRequest.objects.count() == MOST_WAITING

    @pytest.mark.parametrize("typed", ["", "   ", "\0"])
    def test_nothing_is_noted_of_nothing(self, post: MailServer, typed: str) -> None:
        assert Client().post(FORGOTTEN, {"account": typed}).status_code == 400
        assert not PasswordRequest.objects.exists()

    def test_it_is_limited_by_client_as_logins_are(self, post: MailServer, settings: Settings) -> None:
        settings.RATE_LIMITS = {**settings.RATE_LIMITS, "logins": "2/minute"}
        ways = (FORGOTTEN, "/sign-in/new-password/x/y", PAGE)
        statuses = [Client().post(way, {"account": "x"}).status_code for way in ways for _time in range(3)]
        assert statuses[:2] == [200, 200]
        assert set(statuses[2:]) == {429}
        # To look at the forms is a read.
        assert Client().get(FORGOTTEN).status_code == 200


def test_where_no_mail_is_sent_there_is_no_such_page(env: WorkerEnv) -> None:
    assert Client().get(FORGOTTEN).status_code == 404
    assert Client().post(FORGOTTEN, {"account": "ada"}).status_code == 404
    assert FORGOTTEN not in Client().get("/sign-in").content.decode()
    assert not PasswordRequest.objects.exists()
