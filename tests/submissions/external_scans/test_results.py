"""Results that scanners post: each refusal has an answer of its own and leaves nothing half-written."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.checks import run_checks
from django.test import Client
from pytest_django import Settings

from marketplace.external_scans import ExternalScan, ScanState, external_scans_sync
from marketplace.models import HistoryEvent, PastScan, SkillEntry, SkillFlag, SkillVersion
from submissions.external_scans.results import MAX_BODY
from submissions.external_scans.signing import TIMESTAMP_HEADER, VALID_FOR
from submissions.external_scans.store import PENDING_FOR, end_overdue, request_scan
from submissions.models import SubmissionEntry
from submissions.states import State
from tests.marketplace.factories import publish_example
from tests.submissions.external_scans.scanner import SECRET, post
from tests.submissions.external_scans.test_store import NOWHERE, ago, backdate, published
from tests.submissions.factories import make_submission
from vskill.environments import WorkerEnv, get_environment
from vskill.kv.clock import database_now
from vskill.kv.models import KVEntry

pytestmark = pytest.mark.django_db(transaction=True)

FINDING = {
    "ruleId": "shell-opens-a-way-in",
    "severity": "high",
    "title": "Connects a shell to a server",
    "file": "scripts/run.sh",
    "line": 2,
    "excerpt": "<b>nc -e</b>",
    "why": "Whoever runs the server types commands here.",
}


@pytest.fixture
def env(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> WorkerEnv:
    """Return the environment that the test server's host chooses, with a scanner and its secret."""
    monkeypatch.setenv("TEST_EXTERNAL_SECRET", SECRET)
    settings.ALLOWED_HOSTS = [*settings.ALLOWED_HOSTS, "other.example"]
    hosts = settings.VSKILL_ENVIRONMENTS["default"]["hosts"]
    settings.VSKILL_ENVIRONMENTS = {
        "default": {
            "hosts": hosts,
            "public_url": "http://testserver",
            "policy": {"external_scanners": {"one": NOWHERE}},
            "secrets": {"external_scans": "TEST_EXTERNAL_SECRET"},
        },
        "other": {"hosts": ["other.example"], "secrets": {"external_scans": "TEST_EXTERNAL_SECRET"}},
    }
    return get_environment("default")


@pytest.fixture
def version(env: WorkerEnv) -> SkillVersion:
    """Return a version that is published."""
    return published(env)


@pytest.fixture
def scan(env: WorkerEnv, version: SkillVersion) -> ExternalScan:
    """Return a scan of it that was asked for."""
    return request_scan(env, version, "one", by="test")[0]


def result(scan: ExternalScan, state: str = "COMPLETED", **fields: Any) -> dict[str, Any]:
    """Return a result of a scan."""
    findings = {"findings": [FINDING]} if state == "COMPLETED" else {}
    return {"scanId": scan.id, "environment": "default", "state": state, "engineVersion": "9.9", **findings, **fields}


def everything(env: WorkerEnv) -> list[tuple[str, str]]:
    """Return every entry and flag of the environment, to be compared."""
    rows = KVEntry.objects.using(env.database).order_by("namespace", "key").values_list("key", "value")
    return [*rows, *SkillFlag.objects.using(env.database).values_list("kind", "reason")]


def test_a_scan_runs_and_completes_and_page_and_api_show_it_as_an_opinion(
    client: Client, env: WorkerEnv, scan: ExternalScan
) -> None:
    assert post(client, env, scan.id, result(scan, "RUNNING")).json() == {"scanId": scan.id, "state": "RUNNING"}
    assert "Being scanned" in client.get("/skills/hello-skill").content.decode()
    assert post(client, env, scan.id, result(scan)).status_code == 200
    for address in ("/skills/hello-skill", "/skills/hello-skill/scan"):
        page = client.get(address).content.decode()
        assert "What other engines say" in page
        assert "shell-opens-a-way-in" in page
        assert "&lt;b&gt;nc -e&lt;/b&gt;" in page
    (item,) = client.get("/api/v1/skills/hello-skill/external-scans").json()["items"]
    assert (item["state"], item["engineVersion"], item["findings"][0]["engine"]) == ("COMPLETED", "9.9", "one")
    skill = SkillEntry.objects.get(slug="hello-skill")
    assert skill.verdict == "clear"
    assert not SkillFlag.objects.exists()


def test_a_critical_finding_flags_and_an_empty_result_takes_no_flag_off(
    client: Client, env: WorkerEnv, version: SkillVersion, scan: ExternalScan
) -> None:
    post(client, env, scan.id, result(scan, findings=[{**FINDING, "severity": "critical"}]))
    flagged = SkillFlag.objects.get()
    assert (flagged.kind, "one, an engine outside this registry" in flagged.reason) == ("opinion", True)
    again, _new = request_scan(env, version, "one", by="test")
    assert post(client, env, again.id, result(again, findings=[])).status_code == 200
    assert SkillFlag.objects.count() == 1


def test_what_ends_is_in_the_history_of_the_content_and_the_same_again_is_one_row(
    client: Client, env: WorkerEnv, scan: ExternalScan, version: SkillVersion
) -> None:
    post(client, env, scan.id, result(scan, "RUNNING"))
    assert not PastScan.objects.exists()
    post(client, env, scan.id, result(scan))
    again = request_scan(env, version, "one", by="test")[0]
    post(client, env, again.id, result(again))
    [own, outside] = client.get(f"/api/v1/skills/{scan.slug}/scans").json()["items"][::-1]
    assert (own["scanner"], own["published"]) == (None, True)
    assert (outside["scanner"], outside["outcome"], outside["times"]) == ("one", "COMPLETED", 2)
    assert (outside["findings"], outside["engines"]) == ({"high": 1}, [{"name": "one", "version": "9.9"}])
    late = request_scan(env, version, "one", by="test")[0]
    backdate(env, late, requested_at=ago(env, PENDING_FOR))
    assert end_overdue(env, database_now(env.database)) == 1
    page = client.get(f"/skills/{scan.slug}/scan").content.decode()
    assert "Did not answer" in page
    assert "the same 2 times" in page
    # What an earlier release heard of is shown although it kept no history.
    PastScan.objects.all().delete()
    told = client.get(f"/api/v1/skills/{scan.slug}/scans").json()["items"]
    assert [(one["scanner"], one["outcome"]) for one in told] == [("one", "TIMED_OUT"), (None, "clear")]


def test_a_failure_is_told(client: Client, env: WorkerEnv, scan: ExternalScan) -> None:
    post(client, env, scan.id, result(scan, "FAILED", error="No memory."))
    page = client.get("/skills/hello-skill").content.decode()
    assert "No memory." in page


@pytest.mark.parametrize(
    ("how", "status", "code"),
    [
        ({"secret": "wrong"}, 401, "bad_signature"),
        ({"headers": {"X-Vskill-Signature": ""}}, 401, "bad_signature"),
        ({"headers": {"X-Vskill-Signature": "sha256=é"}}, 401, "bad_signature"),
        ({"headers": {TIMESTAMP_HEADER: "soon"}}, 401, "bad_signature"),
        ({"headers": {TIMESTAMP_HEADER: "9" * 400}}, 401, "bad_signature"),
        ({"age": VALID_FOR + 2}, 401, "too_old"),
        ({"age": -VALID_FOR - 2}, 401, "too_old"),
    ],
)
def test_what_is_not_signed_or_too_old_is_refused(
    client: Client, env: WorkerEnv, scan: ExternalScan, how: dict[str, Any], status: int, code: str
) -> None:
    before = everything(env)
    answer = post(client, env, scan.id, result(scan), **how)
    assert (answer.status_code, answer.json()["error"]) == (status, code)
    assert everything(env) == before


def test_another_body_under_the_same_signature_is_refused(client: Client, env: WorkerEnv, scan: ExternalScan) -> None:
    taken = post(client, env, scan.id, result(scan, "RUNNING")).wsgi_request.headers
    stolen = {name: taken[name] for name in ("X-Vskill-Timestamp", "X-Vskill-Signature")}
    answer = post(client, env, scan.id, result(scan, findings=[]), headers=stolen)
    assert answer.json()["error"] == "bad_signature"


@pytest.mark.parametrize("state", ["RUNNING", "COMPLETED"])
def test_a_replay_is_refused(client: Client, env: WorkerEnv, scan: ExternalScan, state: str) -> None:
    first = post(client, env, scan.id, result(scan, state))
    headers = {name: first.wsgi_request.headers[name] for name in ("X-Vskill-Timestamp", "X-Vskill-Signature")}
    before = everything(env)
    again = post(client, env, scan.id, result(scan, state), headers=headers)
    assert (again.status_code, again.json()["error"]) == (409, "replayed")
    assert everything(env) == before


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"environment": "other"}, 403, "foreign_environment"),
        ({"environment": None}, 403, "foreign_environment"),
        ({"scanId": "scan_other"}, 400, "bad_request"),
        ({"state": "PENDING"}, 400, "bad_request"),
        ({"state": ["COMPLETED"]}, 400, "bad_request"),
        ({"findings": None}, 400, "bad_request"),
        ({"findings": [FINDING] * 201}, 400, "bad_request"),
        ({"findings": [FINDING, "text"]}, 400, "bad_request"),
        ({"findings": [{**FINDING, "severity": "fatal"}]}, 400, "bad_request"),
        ({"findings": [{**FINDING, "line": 0}]}, 400, "bad_request"),
        ({"findings": [{**FINDING, "line": True}]}, 400, "bad_request"),
        ({"findings": [{**FINDING, "line": 10**400}]}, 400, "bad_request"),
        ({"findings": [{**FINDING, "title": {"a": 1}}]}, 400, "bad_request"),
        ({"findings": [{**FINDING, "ruleId": " "}]}, 400, "bad_request"),
        ({"engineVersion": 7}, 400, "bad_request"),
    ],
)
def test_what_is_wrong_in_the_body_is_refused_and_nothing_is_written(
    client: Client, env: WorkerEnv, scan: ExternalScan, change: dict[str, Any], status: int, code: str
) -> None:
    before = everything(env)
    answer = post(client, env, scan.id, {**result(scan), **change})
    assert (answer.status_code, answer.json()["error"]) == (status, code)
    assert everything(env) == before


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"[" * 100_000, b"\xff\xfe", b'"text"'])
def test_a_body_that_is_no_object_is_refused(client: Client, env: WorkerEnv, scan: ExternalScan, body: bytes) -> None:
    answer = post(client, env, scan.id, body)
    assert (answer.status_code, answer.json()["error"]) == (400, "bad_request")


def test_a_body_that_is_too_large_is_refused(client: Client, env: WorkerEnv, scan: ExternalScan) -> None:
    answer = post(client, env, scan.id, b" " * (MAX_BODY + 1))
    assert (answer.status_code, answer.json()["error"]) == (413, "too_large")


def test_an_unknown_scan_and_one_of_another_environment(client: Client, env: WorkerEnv, scan: ExternalScan) -> None:
    unknown = post(client, env, "scan_absent", {**result(scan), "scanId": "scan_absent"})
    assert (unknown.status_code, unknown.json()["error"]) == (404, "unknown_scan")
    foreign = Client(headers={"host": "other.example"})
    assert post(foreign, env, scan.id, result(scan)).json()["error"] == "foreign_environment"
    mine = post(foreign, env, scan.id, result(scan, environment="other"))
    assert (mine.status_code, mine.json()["error"]) == (404, "unknown_scan")


def test_what_ended_takes_no_further_result(client: Client, env: WorkerEnv, scan: ExternalScan) -> None:
    post(client, env, scan.id, result(scan))
    before = everything(env)
    answer = post(client, env, scan.id, result(scan, findings=[]))
    assert (answer.status_code, answer.json()["error"]) == (409, "finished")
    assert everything(env) == before


def test_a_result_after_the_limit_is_refused(client: Client, env: WorkerEnv, scan: ExternalScan) -> None:
    backdate(env, scan, requested_at=ago(env, PENDING_FOR))
    answer = post(client, env, scan.id, result(scan))
    assert (answer.status_code, answer.json()["error"]) == (409, "finished")


def test_without_a_secret_nothing_is_taken_and_the_check_says_so(
    client: Client, settings: Settings, env: WorkerEnv, scan: ExternalScan
) -> None:
    found = {**settings.VSKILL_ENVIRONMENTS["default"], "secrets": {}, "public_url": ""}
    settings.VSKILL_ENVIRONMENTS = {"default": found}
    assert post(client, env, scan.id, result(scan)).json()["error"] == "not_offered"
    assert {"submissions.E010", "submissions.E011"} <= {one.id for one in run_checks()}


def test_the_secret_is_in_no_log_and_no_answer(
    client: Client, env: WorkerEnv, scan: ExternalScan, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    answers = [post(client, env, scan.id, result(scan)), post(client, env, scan.id, b"{", age=1)]
    assert SECRET not in caplog.text
    assert SECRET not in repr(env)
    assert all(SECRET not in answer.content.decode() for answer in answers)


def test_an_operator_asks_from_the_admin(client: Client, env: WorkerEnv, version: SkillVersion) -> None:
    get_user_model().objects.create_superuser("operator", password="only for tests")
    client.post("/admin/login/", {"username": "operator", "password": "only for tests"})
    submission = make_submission(env, State.PUBLISHED, slug="hello-skill", version=version.version)
    waiting = make_submission(env, State.ON_HOLD, identity="another")
    rows = {row.submission_id: row.pk for row in SubmissionEntry.objects.all()}
    ids = ",".join(str(rows[one.id]) for one in (submission, waiting))
    answer = client.post(
        "/admin/submissions/submissionentry/operate/ask_outside/", {"ids": ids, "reason": "look twice"}, follow=True
    )
    text = answer.content.decode()
    assert "Ask other engines: 1 of 2 done." in text
    assert "Nothing was asked" in text
    (asked,) = external_scans_sync(env, version.content_hash)
    assert (asked.state, asked.requested_by) == (ScanState.PENDING, "operator")
    assert HistoryEvent.objects.get(action="asked other engines").reason == "look twice"


def test_only_the_content_that_was_scanned_shows_the_opinion(
    client: Client, env: WorkerEnv, scan: ExternalScan
) -> None:
    post(client, env, scan.id, result(scan))
    publish_example(env, files={"SKILL.md": "---\nname: hello-skill\ndescription: New.\n---\n\nNew.\n"})
    assert "What other engines say" not in client.get("/skills/hello-skill").content.decode()
    assert json.loads(client.get("/api/v1/skills/hello-skill/external-scans").content)["items"] == []
