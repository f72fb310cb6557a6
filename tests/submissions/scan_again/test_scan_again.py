"""Anybody may ask for another scan of what is published: deduplicated, within limits, and told in words."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client, override_settings
from pytest_django.fixtures import Settings

from marketplace.external_scans import ScanState
from marketplace.models import SkillVersion
from submissions import messages
from submissions.external_scans.store import BUDGET_KEY, PER_HOUR, open_scans, request_scan, write_scan
from submissions.models import QueueMessage
from submissions.scan_again.ask import MOST_ON_DEMAND
from submissions.verification.scan_keys import current_key, engines_of
from tests.marketplace.factories import publish_example
from tests.submissions.external_scans.scanner import SECRET
from vskill.environments import WorkerEnv, get_environment
from vskill.kv.clock import database_now, isoformat
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.rate_limits.kinds import Kind

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = "/skills/hello-skill/scan-again"
API = "/api/v1/skills/hello-skill/scan-again"


@pytest.fixture
def outside(env: WorkerEnv, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> WorkerEnv:
    """Return an environment with one scanner outside, which nobody runs."""
    monkeypatch.setenv("TEST_SECRET", SECRET)
    found = {**settings.VSKILL_ENVIRONMENTS["default"], "secrets": {"external_scans": "TEST_SECRET"}}
    found["policy"] = {"external_scanners": {"one": "http://127.0.0.1:9/scan"}}
    settings.VSKILL_ENVIRONMENTS = {"default": found}
    return get_environment("default")


def published(env: WorkerEnv, *, current: bool = True) -> SkillVersion:
    """Publish a skill whose last scan was by the present engines, or by none that are known."""
    publish_example(env)
    key = current_key(engines_of(env)) if current else "older"
    SkillVersion.objects.update(scan_key=key)
    version: SkillVersion = SkillVersion.objects.get()
    return version


def ask(client: Client, **fields: Any) -> Any:
    return client.post(API, fields, content_type="application/json")


def text(answer: Any) -> str:
    page = answer.content.decode().partition("<main")[2]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def test_a_visitor_asks_by_a_form_that_needs_no_script_and_sees_that_it_waits(env: WorkerEnv) -> None:
    version = published(env, current=False)
    browser = Client(enforce_csrf_checks=True)
    report = browser.get("/skills/hello-skill/scan").content.decode()
    form = report[report.index(f'action="{PAGE}"') :].partition("</form>")[0]
    token = form.partition('name="csrfmiddlewaretoken" value="')[2].partition('"')[0]
    assert browser.post(PAGE, {"version": version.version}).status_code == 403
    assert not QueueMessage.objects.exists()

    answer = browser.post(PAGE, {"version": version.version, "csrfmiddlewaretoken": token}, follow=True)
    assert answer.redirect_chain[-1][1] == 302
    assert "It waits to be scanned again." in text(answer)
    assert "another one can be asked for when it has ended" in text(answer)
    assert QueueMessage.objects.get().subject == str(version.pk)


def test_however_many_ask_one_scan_waits(outside: WorkerEnv, client: Client) -> None:
    published(outside, current=False)
    first, second = ask(client), ask(client)
    assert (first.status_code, first.json()["asked"], first.json()["engines"]) == (202, True, "waiting")
    assert [(one["provider"], one["state"]) for one in first.json()["external"]] == [("one", "PENDING")]
    assert (second.status_code, second.json()["asked"]) == (200, False)
    assert "under way already" in second.json()["message"]
    assert QueueMessage.objects.filter(kind=messages.RESCAN).count() == 1
    (kept,) = open_scans(outside)
    write_scan(outside, kept, state=ScanState.RUNNING, started_at=isoformat(database_now(outside.database)))
    assert ask(client).status_code == 200
    assert len(open_scans(outside)) == 1


def test_a_scan_that_ended_can_be_asked_for_again(outside: WorkerEnv, client: Client) -> None:
    published(outside)
    assert ask(client, version="").status_code == 202
    (kept,) = open_scans(outside)
    write_scan(outside, kept, state=ScanState.COMPLETED, finished_at=isoformat(database_now(outside.database)))
    assert "Read it" in text(client.get(PAGE))
    assert ask(client).status_code == 202
    assert open_scans(outside)[0].scan.requested_by == "the API"


def test_what_the_present_engines_have_read_is_not_asked_of_them_again(env: WorkerEnv, client: Client) -> None:
    published(env)
    answer = ask(client)
    assert (answer.status_code, answer.json()["engines"]) == (200, "current")
    assert "would say the same again" in answer.json()["message"]
    assert "There is nothing to ask at the moment." in text(client.get(PAGE))
    assert not QueueMessage.objects.exists()


def test_half_of_the_hour_is_kept_for_what_is_published_and_all_is_asked_or_nothing(
    outside: WorkerEnv, client: Client
) -> None:
    version = published(outside, current=False)
    used = [isoformat(database_now(outside.database) - timedelta(minutes=20))] * MOST_ON_DEMAND
    KVNamespace(KVEntry, outside).put_sync(BUDGET_KEY, used)
    refused = ask(client)
    assert (refused.status_code, refused.json()["error"]) == (429, "too_many_scans")
    assert "the next is possible in 40 min" in refused.json()["message"]
    assert 2300 <= int(refused.headers["Retry-After"]) <= 2400
    page = client.post(PAGE)
    assert page.status_code == 429
    assert "Nothing was asked" in text(page)
    assert not QueueMessage.objects.exists()
    assert MOST_ON_DEMAND < PER_HOUR
    assert request_scan(outside, version, "one", by="publication")[1]


@override_settings(RATE_LIMITS={**dict.fromkeys(Kind, ""), Kind.SUBMISSIONS: "1/hour"})
def test_asking_counts_against_the_limit_of_a_client_and_looking_does_not(env: WorkerEnv, client: Client) -> None:
    published(env)
    assert [client.get(PAGE).status_code for _ in range(3)] == [200] * 3
    assert ask(client).status_code == 200
    refused = ask(client)
    assert (refused.status_code, refused.json()["error"]) == (429, "rate_limited")
    assert client.post(PAGE).status_code == 429


def test_only_what_is_published_can_be_scanned_again(env: WorkerEnv, client: Client) -> None:
    published(env)
    for path in ("/skills/none/scan-again", f"{PAGE}?version=9.9.9"):
        assert client.get(path).status_code == 404
    assert client.post(PAGE, {"version": "9.9.9"}).status_code == 404
    answer = ask(client, version="9.9.9")
    assert (answer.status_code, answer.json()["error"]) == (404, "nothing_to_scan")
    assert ask(client, version=5).status_code == 400
    assert client.get(API).status_code == 405
