"""People are told by mail once an address is confirmed: bounded, readable, with a way out, and to nobody else."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db.models import F
from django.test import Client
from pytest_django.fixtures import Settings

from submissions.notification_models import NotificationDelivery, NotificationPreference, NotificationSubscription
from submissions.notifications.errors import NoSuchSubscription, SubscriptionRefused
from submissions.notifications.preferences import (
    add_mail,
    ask_to_confirm,
    confirm,
    confirm_token,
    preference,
    set_rhythm,
    unsubscribe,
    unsubscribe_token,
)
from submissions.notifications.subscriptions import Scope, Wish
from submissions.outbox import Kind
from submissions.states import State
from tests.submissions.notifications.conftest import ADDRESS
from tests.submissions.notifications.mail_server import MailServer
from tests.submissions.notifications.told import confirmed, end, make_due, person, run_deliver
from vskill.checks import check_mail
from vskill.configuration import VARIABLES
from vskill.environments import WorkerEnv
from vskill.mail_variables import mail_server as read_server
from vskill.variables import read_variables

pytestmark = pytest.mark.django_db(transaction=True)
# What is encoded is a line break and another header.
ENCODED = '"=?utf-8?q?=0aBcc:x?="@example.org'


def let_time_pass(**columns: timedelta) -> None:
    """Let the time come for the next mail, or for another question."""
    names = columns or {"next_at": timedelta(days=2)}
    NotificationPreference.objects.update(**{name: F(name) - passed for name, passed in names.items()})


class TestConfirmation:
    def test_nothing_but_one_question_goes_to_an_address_that_nobody_has_confirmed(
        self, env: WorkerEnv, post: MailServer
    ) -> None:
        ada = person("ada")
        ask_to_confirm(env, ada, ADDRESS)
        with pytest.raises(SubscriptionRefused, match="Confirm an address"):
            add_mail(env, ada, Wish([Kind.HELD]))
        end(env, submitterAccount="ada")
        assert run_deliver(env).mails == 1
        assert run_deliver(env).mails == 0
        [asked] = post.taken
        assert (asked["To"], asked["From"]) == (ADDRESS, "vskill@example.net")
        link = re.search(r"http://127.0.0.1:8000(/account/\S+)", asked.get_content())
        assert link is not None

        # A scanner that follows links confirms nothing.
        shown = Client().get(link[1])
        assert shown.status_code == 200
        assert preference(env, ada).confirmed_at is None
        assert "go to ada@example.org" in Client().post(link[1]).content.decode()
        [own] = NotificationSubscription.objects.all()
        assert (own.way, own.scope, own.kinds.split()) == ("mail", "own", list(Kind))

    def test_a_link_that_was_changed_or_is_about_another_address_confirms_nothing(
        self, env: WorkerEnv, post: MailServer
    ) -> None:
        ada = person("ada")
        ask_to_confirm(env, ada, ADDRESS)
        token = confirm_token(env, preference(env, ada))
        let_time_pass(asked_at=timedelta(minutes=11))
        ask_to_confirm(env, ada, "other@example.org")
        for given in (token, token[:-1], "x", unsubscribe_token(env, ada.pk)):
            with pytest.raises(NoSuchSubscription):
                confirm(env, given)
            assert Client().post(f"/account/notifications/confirm/{given}").status_code == 404

    def test_questions_are_asked_once_in_ten_minutes(self, env: WorkerEnv, post: MailServer) -> None:
        ada = person("ada")
        ask_to_confirm(env, ada, ADDRESS)
        with pytest.raises(SubscriptionRefused, match="ten minutes"):
            ask_to_confirm(env, ada, "victim@example.org")
        for address in ("nobody", "a@b\nBcc: c@d", "a@b.example,c@d.example", "\N{CYRILLIC SMALL LETTER A}@b.example"):
            let_time_pass(asked_at=timedelta(minutes=11))
            with pytest.raises(SubscriptionRefused, match="Nothing was changed"):
                ask_to_confirm(env, ada, address)

    @pytest.mark.parametrize(
        "address",
        [ENCODED, "=?utf-8?b?Cg==?=@example.org", '"a b"@example.org', '"a\\"@example.org', "a`b@example.org"],
    )
    def test_what_a_mail_may_take_for_something_else_is_no_address(
        self, env: WorkerEnv, post: MailServer, address: str
    ) -> None:
        with pytest.raises(SubscriptionRefused, match="Nothing was changed"):
            ask_to_confirm(env, person("ada"), address)

    @pytest.mark.parametrize("address", ["o'neil+vskill=x@example.org", "a.b_c-d?e@example.org"])
    def test_a_plain_address_is_asked(self, env: WorkerEnv, post: MailServer, address: str) -> None:
        ask_to_confirm(env, person("ada"), address)
        assert run_deliver(env).mails == 1
        assert [one["To"] for one in post.taken] == [address]

    def test_one_that_cannot_be_written_holds_up_no_other(
        self, env: WorkerEnv, post: MailServer, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Of both kinds of mails: an address from before they were looked at so closely."""
        told, asked = confirmed(env, person("told"), "told@example.org"), person("asked")
        ask_to_confirm(env, asked, "asked@example.org")
        NotificationPreference.objects.filter(owner_id__in=[told.pk, asked.pk]).update(address=ENCODED)
        confirmed(env, person("zoe"), "zoe@example.org")
        for name in ("told", "zoe"):
            end(env, submitterAccount=name)
        report = run_deliver(env)
        assert (report.mails, report.delivered, report.retried) == (1, 1, 1)
        assert [one["To"] for one in post.taken] == ["zoe@example.org"]
        assert "confirm another" in NotificationDelivery.objects.get(state="pending").said
        assert "Bcc" not in caplog.text

    def test_without_a_server_there_are_no_mails_and_nothing_waits_for_them(
        self, env: WorkerEnv, ada: Any, settings: Settings, post: MailServer
    ) -> None:
        settings.MAIL_SERVER = {}
        end(env, submitterAccount="ada")
        assert run_deliver(env).made == 0
        with pytest.raises(SubscriptionRefused, match="sends no mails"):
            ask_to_confirm(env, person("bob"), ADDRESS)


class TestMails:
    def test_a_submitter_hears_how_it_ended_in_words_that_read_well(
        self, env: WorkerEnv, ada: Any, post: MailServer
    ) -> None:
        held = end(env, submitterAccount="ada", skillName="notes", reason="It reads keys.")
        end(env, submitterAccount="bob")
        report = run_deliver(env)
        assert (report.mails, report.delivered) == (1, 1)
        [mail] = post.taken
        assert mail["Subject"] == "Held for review: notes"
        assert mail.get_content_type() == "text/plain"
        assert (
            mail.get_content()
            .replace("\r\n", "\n")
            .startswith(
                f"Held for review: notes\nIt reads keys.\n{env.public_url}/submissions/{held.id}\n\n-- \n"
                "You chose to hear of: what you submitted.\n"
            )
        )
        assert mail["Auto-Submitted"] == "auto-generated"
        assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"

    def test_what_an_author_wrote_adds_no_header_and_no_line(self, env: WorkerEnv, ada: Any, post: MailServer) -> None:
        name = "notes\r\nBcc: victim@example.org\r\n\r\n\N{RIGHT-TO-LEFT OVERRIDE}sweet"
        end(env, submitterAccount="ada", skillName=name, reason="first\n\n-- \nsecond")
        run_deliver(env)
        [mail] = post.taken
        assert mail["Bcc"] is None
        assert mail["To"] == ADDRESS
        assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in mail["Subject"] + mail.get_content()
        assert mail.get_content().count("-- ") == 2
        assert "first -- second" in mail.get_content()

    def test_what_comes_within_five_minutes_or_a_day_is_one_mail(
        self, env: WorkerEnv, ada: Any, post: MailServer
    ) -> None:
        def ends(count: int, mark: str) -> None:
            for number in range(count):
                end(env, submitterAccount="ada", repoUrl=f"https://github.com/acme/{mark}{number}")

        ends(1, "a")
        assert run_deliver(env).mails == 1
        ends(3, "b")
        assert run_deliver(env).mails == 0
        let_time_pass(next_at=timedelta(minutes=6))
        assert run_deliver(env).mails == 1
        assert post.taken[1]["Subject"].strip().startswith("3 notifications of 127.0.0.1")
        set_rhythm(env, ada, "daily")
        ends(2, "c")
        let_time_pass(next_at=timedelta(hours=23))
        assert run_deliver(env).mails == 0
        let_time_pass(next_at=timedelta(hours=2))
        assert run_deliver(env).mails == 1
        assert NotificationDelivery.objects.exclude(state="delivered").count() == 0

    def test_two_choices_that_name_one_event_tell_it_once(self, env: WorkerEnv, ada: Any, post: MailServer) -> None:
        add_mail(env, ada, Wish([Kind.HELD], Scope.PUBLISHER, "git.example.org/someone"))
        end(env, submitterAccount="ada")
        assert (run_deliver(env).delivered, len(post.taken)) == (2, 1)
        assert post.taken[0]["Subject"].startswith("Held")

    def test_a_server_that_refuses_is_tried_again_and_the_repeat_has_the_same_id(
        self, env: WorkerEnv, ada: Any, post: MailServer
    ) -> None:
        post.refuses = "450 4.2.1 not now, ada@example.org"
        end(env, submitterAccount="ada")
        assert run_deliver(env).retried == 1
        assert NotificationDelivery.objects.get().said == "the mail server refused the address with status 450"
        post.refuses = ""
        let_time_pass()
        make_due()
        assert run_deliver(env).delivered == 1
        key = NotificationDelivery.objects.get().key
        assert post.taken[0]["Message-ID"] == f"<{key}.1@127.0.0.1>"

    def test_whose_role_has_ended_gets_no_mail(self, env: WorkerEnv, post: MailServer) -> None:
        rita = confirmed(env, person("rita", "reviewer"), "rita@example.org")
        add_mail(env, rita, Wish([Kind.HELD]))
        end(env)
        let_time_pass()
        NotificationPreference.objects.update(next_at=None)
        assert run_deliver(env, seconds=0.0).mails == 0
        rita.role_grants.all().delete()
        run_deliver(env)
        assert post.taken == []


class TestUnsubscribe:
    def test_one_click_ends_all_mails_without_a_session_and_a_look_ends_none(
        self, env: WorkerEnv, ada: Any, post: MailServer
    ) -> None:
        end(env, submitterAccount="ada")
        run_deliver(env)
        path = post.taken[0]["List-Unsubscribe"].strip(" <>").removeprefix(env.public_url)
        strict = Client(enforce_csrf_checks=True)
        assert "ada" in strict.get(path).content.decode()
        assert NotificationSubscription.objects.filter(removed_at=None).count() == 1
        for _twice in range(2):
            assert strict.post(path, {"List-Unsubscribe": "One-Click"}).status_code == 200
        assert NotificationSubscription.objects.filter(removed_at=None).count() == 0
        end(env, State.REJECTED, submitterAccount="ada")
        let_time_pass()
        assert run_deliver(env).mails == 0
        # Another address does not sign her up again.
        let_time_pass(asked_at=timedelta(minutes=11))
        ask_to_confirm(env, ada, "ada@example.com")
        confirm(env, confirm_token(env, preference(env, ada)))
        assert NotificationSubscription.objects.filter(removed_at=None).count() == 0

    def test_a_link_of_another_kind_or_account_ends_nothing(self, env: WorkerEnv, ada: Any) -> None:
        for token in (confirm_token(env, preference(env, ada)), unsubscribe_token(env, 0), "x"):
            with pytest.raises(NoSuchSubscription):
                unsubscribe(env, token)
            assert Client().post(f"/account/notifications/end/{token}").status_code == 404
        assert NotificationSubscription.objects.filter(removed_at=None).count() == 1


class TestSettings:
    def read(self, **given: str) -> dict[str, Any]:
        return read_server(read_variables(VARIABLES, given, {})["VSKILL_EMAIL_URL"].value)

    def test_an_address_becomes_what_django_connects_to(self) -> None:
        found = self.read(VSKILL_EMAIL_URL="smtp+tls://us%40er:p%3Aw@mail.example.org:587")
        assert (found["host"], found["port"], found["use_tls"], found["use_ssl"]) == (
            "mail.example.org",
            587,
            True,
            False,
        )
        assert (found["username"], found["password"]) == ("us@er", "p:w")
        assert self.read() == {}
        assert self.read(VSKILL_EMAIL_URL="smtp+ssl://mail.example.org:465")["use_ssl"]

    @pytest.mark.parametrize("url", ["https://u:secret-word@h", "smtp://", "secret-word", "smtp://u:secret-word@h:x"])
    def test_a_wrong_address_is_refused_without_showing_its_password(self, url: str) -> None:
        with pytest.raises(ImproperlyConfigured, match="mail") as refused:
            self.read(VSKILL_EMAIL_URL=url)
        assert "secret-word" not in str(refused.value)

    def test_the_check_says_what_is_missing(self, settings: Settings) -> None:
        settings.MAIL_SERVER, settings.MAIL_FROM = {}, ""
        assert check_mail(None) == []
        settings.MAIL_FROM = "a@example.org"
        assert [one.id for one in check_mail(None)] == ["vskill.W003"]
        settings.MAIL_SERVER, settings.MAIL_FROM = {"host": "mail.example.org"}, ""
        settings.VSKILL_ENVIRONMENTS = {"default": {"hosts": ["*"]}}
        assert [one.id for one in check_mail(None)] == ["vskill.E007", "vskill.E008"]
