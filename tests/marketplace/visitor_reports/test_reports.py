"""A visitor reports a skill, an operator decides, and whoever has the reference sees what became of it."""

from __future__ import annotations

import re
from typing import Any
from unittest.mock import patch

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from marketplace.catalog import quarantine_skill, rename_skill
from marketplace.flags import flags_of
from marketplace.models import HistoryEvent, SkillEntry, SkillVersion, VisitorReport
from marketplace.visitor_reports import reports
from marketplace.visitor_reports.reports import (
    ReportDecided,
    ReportReason,
    dismiss,
    flag_reported,
    open_reports,
    report,
)
from tests.marketplace.factories import publish_example
from vskill.environments import WorkerEnv
from vskill.rate_limits.kinds import Kind, rating_of

pytestmark = pytest.mark.django_db(transaction=True)

FORM = "/skills/hello-skill/report"
SAID = {
    "reason": "malicious",
    "evidence": "<script>alert(1)</script> in scripts/run.sh \u202e sends keys.",
    "contact": "<b>me</b>@example.org",
    "version": "1.0.0",
}


@pytest.fixture(autouse=True)
def _published(env: WorkerEnv) -> None:
    publish_example(env, declared_version="1.0.0")


@pytest.fixture
def staff() -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("root", "", "long enough to pass"))
    return client


def sent(client: Client, **changes: str) -> str:
    """Send a report, and return the address of its page."""
    answer = client.post(FORM, {**SAID, **changes})
    assert answer.status_code == 302, answer.content.decode()
    return str(answer.headers["Location"])


def test_a_report_is_kept_and_its_page_says_nothing_of_what_was_written(client: Client, env: WorkerEnv) -> None:
    assert '<textarea id="report-evidence"' in client.get(f"{FORM}?version=1.0.0").content.decode()
    assert f'href="{FORM}?version=1.0.0"' in client.get("/skills/hello-skill").content.decode()
    address = sent(client)
    assert re.fullmatch(r"/reports/rep_[0-9a-f]{32}", address)
    page = client.get(address)
    assert (page.status_code, page.headers["Cache-Control"], page.headers["X-Robots-Tag"]) == (
        200,
        "no-store",
        "noindex",
    )
    assert "It waits for an operator." in page.content.decode()
    assert b"alert(1)" not in page.content
    assert b"example.org" not in page.content
    kept = VisitorReport.objects.get()
    assert (kept.state, kept.version, kept.reason) == ("open", "1.0.0", "malicious")
    assert "\u202e" not in kept.evidence
    assert HistoryEvent.objects.filter(action="reported", actor="a visitor", version="1.0.0").count() == 1
    # Nothing public tells that there is a report.
    assert b"reported" not in client.get("/skills/hello-skill").content.lower()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"reason": "spam"}, "Choose why"),
        ({"reason": ""}, "Choose why"),
        ({"evidence": "bad"}, "What you saw"),
        ({"evidence": "x" * 4001}, "What you saw"),
        ({"evidence": "x" * 30 + "\0"}, "What you saw"),
        ({"contact": "x" * 201}, "Contact"),
        ({"version": "x" * 65}, "Version"),
    ],
)
def test_what_is_no_report_is_refused_and_nothing_is_kept(client: Client, changes: dict[str, str], says: str) -> None:
    answer = client.post(FORM, {**SAID, **changes})
    shown = answer.content.decode()
    assert (answer.status_code, says in shown, "Nothing was stored" in shown) == (400, True, True)
    assert "<script>alert" not in shown
    assert not VisitorReport.objects.exists()


def test_what_is_not_shown_cannot_be_reported(client: Client, env: WorkerEnv) -> None:
    rename_skill(env, "hello-skill", "new-name", actor="test", reason="test")
    assert sent(client).startswith("/reports/")
    quarantine_skill(env, "new-name", actor="test", reason="test")
    for method in (client.get, client.post):
        assert method(FORM).status_code == 404
        assert method("/skills/none/report").status_code == 404
    assert client.get("/reports/none").status_code == 404
    assert client.get("/reports/" + "x" * 300).status_code == 404


def test_reports_count_as_submissions_and_come_from_our_own_form(client: Client, rf: Any) -> None:
    assert rating_of(rf.post(FORM)).kind is Kind.SUBMISSIONS
    assert rating_of(rf.get(FORM)).kind is Kind.READS
    assert Client(enforce_csrf_checks=True).post(FORM, SAID).status_code == 403
    with patch.object(reports, "MOST_OPEN", 1):
        sent(client)
        answer = client.post(FORM, SAID)
    assert (answer.status_code, b"Many reports" in answer.content, "Retry-After" in answer.headers) == (429, True, True)
    assert VisitorReport.objects.count() == 1


@pytest.mark.parametrize(
    ("operation", "says"),
    [("dismiss", "changed nothing"), ("flag", "carries a warning"), ("quarantine", "is withheld")],
)
def test_an_operator_decides_and_the_visitor_sees_it(
    client: Client, staff: Client, env: WorkerEnv, operation: str, says: str
) -> None:
    address = sent(client)
    found = VisitorReport.objects.get()
    listed = staff.get("/admin/marketplace/visitorreport/?state=open").content.decode()
    assert "It does harm" in listed
    detail = staff.get(f"/admin/marketplace/visitorreport/{found.pk}/change/").content.decode()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in detail
    assert "<script>alert" not in detail
    place = f"/admin/marketplace/visitorreport/operate/{operation}/?ids={found.pk}"
    assert "<script>alert" not in staff.get(place).content.decode()
    staff.post(place, {"reason": "Seen in run.sh."})
    assert says in client.get(address).content.decode()
    decided = VisitorReport.objects.get()
    assert (decided.decided_by, decided.decision_reason) == ("root", "Seen in run.sh.")
    assert decided.decided_at is not None
    row, version = SkillEntry.objects.get(slug="hello-skill"), SkillVersion.objects.get()
    assert [one.kind for one in flags_of(env, version)] == (["report"] if operation == "flag" else [])
    assert row.visibility == ("quarantined" if operation == "quarantine" else "visible")
    assert open_reports(env, row) == 0
    assert HistoryEvent.objects.filter(action=f"report {decided.state}", actor="root").count() == 1
    assert staff.get(f"/admin/marketplace/skillentry/{row.pk}/change/").status_code == 200
    # A second decision, in another window, changes nothing.
    with pytest.raises(ReportDecided):
        dismiss(env, found, actor="other", reason="late")
    assert VisitorReport.objects.get().decided_by == "root"


def test_a_decision_that_cannot_be_done_leaves_the_report_open(env: WorkerEnv) -> None:
    report(env, "hello-skill", "9.9.9", reason=ReportReason.BROKEN, evidence="x" * 30, contact="")
    with pytest.raises(Exception, match=r"has no version '9.9.9'"):
        flag_reported(env, VisitorReport.objects.get(), actor="root", reason="Broken.")
    assert VisitorReport.objects.get().state == "open"
