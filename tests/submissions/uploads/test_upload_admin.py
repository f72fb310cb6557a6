"""The admin of uploads: who sent what, when, what became of it, and the operations on its submission."""

from __future__ import annotations

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from submissions.models import SubmissionEntry, UploadedBundle
from submissions.states import State
from submissions.store.queries import history, read_submission
from tests.submissions.front_door import EVIL, drain
from tests.submissions.uploads.uploading import FILES, publish_form, token_for
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)

LIST = "/admin/submissions/uploadedbundle/"


@pytest.fixture
def operator(client: Client) -> Client:
    client.force_login(get_user_model()._default_manager.create_superuser("operator"))
    return client


def shown(client: Client, address: str = LIST) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, address
    return str(answer.content.decode())


def chosen(name: str) -> dict[str, object]:
    return {"action": name, "_selected_action": [UploadedBundle.objects.latest("pk").pk]}


def test_operators_see_who_uploaded_what_and_what_became_of_it(env: WorkerEnv, operator: Client) -> None:
    publish_form(token_for(env, "ada"), changelog="Merges <i>too</i>")
    async_to_sync(drain)(env)
    publish_form(token_for(env, "ada"), {**FILES, "notes.txt": b"x"}, version="1.1.0")
    publish_form(token_for(env, "eve"), {"SKILL.md": EVIL.encode()}, slug="key-helper", version="2.0.0")

    table = shown(operator).partition('id="result_list"')[2].partition("</table>")[0]
    rows = table.partition("<tbody>")[2].split("<tr>")[1:]
    words = [("key-helper", "2.0.0", "eve"), ("pdf-tools", "1.1.0", "ada"), ("pdf-tools", "1.0.0", "ada")]
    for row, expected, state in zip(rows, words, ("Waiting", "Waiting", "Published"), strict=True):
        assert all(f">{word}</" in row for word in (*expected, state)), row

    first = UploadedBundle.objects.order_by("pk")[0]
    page = shown(operator, f"{LIST}{first.pk}/change/")
    entry = SubmissionEntry.objects.order_by("submitted_at")[0]
    assert f"/admin/submissions/submissionentry/{entry.pk}/change/" in page
    assert f"/submissions/{entry.submission_id}" in page
    assert "published as pdf-tools 1.0.0" in page
    assert f"scripts/run.sh <small>{len(FILES['scripts/run.sh'])} bytes" in page
    assert "Merges &lt;i&gt;too&lt;/i&gt;" in page
    assert 'name="_save"' not in page

    # One that was removed leaves its number, and its uploads.
    get_user_model()._default_manager.get(username="eve").delete()
    assert "which is gone" in shown(operator)


@pytest.mark.parametrize(
    ("term", "found"),
    [("ada", 2), ("@ada", 2), ("ada/pdf-tools", 1), ("@ada/csv-tools", 1), ("ad", 0), ("nobody", 0), ("ada/none", 0)],
)
def test_uploads_are_found_by_account_and_by_skill(env: WorkerEnv, operator: Client, term: str, found: int) -> None:
    for name, slug in (("ada", "pdf-tools"), ("ada", "csv-tools"), ("eve", "key-helper")):
        publish_form(token_for(env, name), slug=slug)
    assert shown(operator, f"{LIST}?q={term}").count('class="action-select"') == found


def test_an_upload_that_is_held_is_refused_with_a_reason(env: WorkerEnv, operator: Client) -> None:
    publish_form(token_for(env, "eve"), {"SKILL.md": EVIL.encode()}, slug="key-helper")
    async_to_sync(drain)(env)
    submission = SubmissionEntry.objects.get().submission_id

    confirm = operator.post(LIST, chosen("reject"))["Location"]
    assert "uploaded by eve" in shown(operator, confirm)
    operator.post(confirm, {"reason": "it mails keys away"})

    refused = read_submission(env, submission)
    assert (refused.state, refused.text("reason")) == (State.REJECTED, "it mails keys away")
    assert history(env, submission)[-1].actor == "operator"
    assert "it mails keys away" in shown(operator, f"{LIST}{UploadedBundle.objects.get().pk}/change/")

    # What is over cannot be refused again, and an upload without a submission has nothing to operate on.
    again = operator.post(operator.post(LIST, chosen("reject"))["Location"], {"reason": "again"}, follow=True)
    assert "1.0.0: A submission that is REJECTED cannot become REJECTED" in again.content.decode()
    SubmissionEntry.objects.all().delete()
    left = operator.post(operator.post(LIST, chosen("reject"))["Location"], {"reason": "again"}, follow=True)
    assert "There is no submission" in left.content.decode()
    assert "no submission is left" in shown(operator)


def test_who_may_only_see_uploads_changes_none(env: WorkerEnv, client: Client) -> None:
    publish_form(token_for(env, "ada"))
    user = get_user_model()._default_manager.create_user("viewer", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_uploadedbundle"))
    client.force_login(user)

    assert "pdf-tools" in shown(client)
    pk = UploadedBundle.objects.get().pk
    assert client.get(f"{LIST}operate/reject/?ids={pk}").status_code == 403
    assert client.post(f"{LIST}{pk}/delete/").status_code == 403
    assert UploadedBundle.objects.count() == 1


def test_a_page_of_uploads_takes_as_many_queries_as_one(env: WorkerEnv, operator: Client) -> None:
    counts = []
    for slug in ("a-skill", "b-skill", "c-skill"):
        publish_form(token_for(env, f"account-of-{slug}"), slug=slug)
        with CaptureQueriesContext(
            connection,
        ) as captured:
            shown(operator)
        counts.append(len(captured))
        assert not any('"content"' in one["sql"] for one in captured.captured_queries)
    assert counts[0] == counts[1] == counts[2]
