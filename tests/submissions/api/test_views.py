"""The API of the submissions, asked as a client asks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.http import HttpResponse
from django.test import AsyncClient

from submissions.models import QueueMessage, SubmissionEntry
from tests.submissions.front_door import drain, repository, skills
from vskill.access_tokens.scopes import Scope
from vskill.access_tokens.tokens import make_token
from vskill.environments import WorkerEnv
from vskill.kv.threads import writers

pytestmark = pytest.mark.django_db(transaction=True)

SUBMISSIONS = "/api/v1/submissions"


async def _post(client: AsyncClient, body: Any) -> HttpResponse:
    text = body if isinstance(body, str | bytes) else json.dumps(body)
    return await client.post(SUBMISSIONS, text, content_type="application/json")  # type: ignore[return-value]  # stubs


async def test_a_repository_is_accepted_with_its_true_state(async_client: AsyncClient, tmp_path: Path) -> None:
    response = await _post(async_client, {"repoUrl": repository(tmp_path, skills("one")), "source": "cli-submit"})
    body = json.loads(response.content)

    assert response.status_code == 202
    assert body["state"] == "RECEIVED"
    assert body["statusUrl"].endswith(f"/submissions/{body['id']}")
    shown = await async_client.get(f"{SUBMISSIONS}/{body['id']}")
    assert shown.json()["state"] == "RECEIVED"
    assert [step["to"] for step in shown.json()["history"]] == ["RECEIVED"]


async def test_one_skill_of_several_is_submitted_by_its_path(async_client: AsyncClient, tmp_path: Path) -> None:
    url = repository(tmp_path, skills("one", "two"))
    response = await _post(async_client, {"repoUrl": url, "skillPath": "two"})

    assert response.status_code == 202
    assert [item["skillPath"] for item in json.loads(response.content)["submissions"]] == ["two"]
    assert await SubmissionEntry.objects.acount() == 1


async def test_what_is_known_is_answered_in_the_words_clients_read(
    async_client: AsyncClient, env: WorkerEnv, tmp_path: Path
) -> None:
    url = repository(tmp_path, skills("one"))
    first = json.loads((await _post(async_client, {"repoUrl": url})).content)
    pending = await _post(async_client, {"repoUrl": url})
    await drain(env)
    published = await _post(async_client, {"repoUrl": url})

    assert pending.status_code == published.status_code == 200
    assert json.loads(pending.content)["duplicate"] is True
    assert json.loads(pending.content)["submissionId"] == first["id"]
    assert json.loads(published.content)["alreadyVerified"] is True
    assert json.loads(published.content)["skillUrl"].endswith("/skills/one")


@pytest.mark.parametrize(
    ("body", "error"),
    [
        pytest.param("", "bad_request", id="nothing"),
        pytest.param("{", "bad_request", id="not JSON"),
        pytest.param(b"\xff\xfe", "bad_request", id="not text"),
        pytest.param("[" * 20000, "bad_request", id="nested too deeply"),
        pytest.param([], "bad_request", id="not an object"),
        pytest.param({}, "bad_request", id="no address"),
        pytest.param({"repoUrl": 7}, "bad_request", id="a number for an address"),
        pytest.param({"repoUrl": "https://github.com/a/b", "skillPath": ["x"]}, "bad_request", id="a list for a path"),
        pytest.param({"repoUrl": "not an address"}, "invalid_repository_url", id="not an address"),
        pytest.param({"repoUrl": "ssh://deploy@host.example/a/b"}, "invalid_repository_url", id="user"),
        pytest.param({"repoUrl": "https://127.0.0.1/a/b"}, "invalid_repository_url", id="loopback"),
        pytest.param({"repoUrl": "file:///etc"}, "invalid_repository_url", id="a file outside the allowed folders"),
    ],
)
async def test_bad_requests_say_what_is_wrong_and_leave_nothing(
    async_client: AsyncClient, body: Any, error: str
) -> None:
    response = await _post(async_client, body)
    answer = json.loads(response.content)

    assert response.status_code == 400
    assert answer["error"] == error
    assert len(answer["message"]) > 20
    assert await SubmissionEntry.objects.acount() == 0
    assert await QueueMessage.objects.acount() == 0


async def test_a_body_that_is_too_large_is_refused(async_client: AsyncClient) -> None:
    response = await _post(async_client, {"repoUrl": "x" * 70_000})

    assert response.status_code == 413
    assert "64 KiB" in json.loads(response.content)["message"]


async def test_a_repository_without_skills_is_answered_with_what_a_skill_is(
    async_client: AsyncClient, tmp_path: Path
) -> None:
    response = await _post(async_client, {"repoUrl": repository(tmp_path, {"README.md": "hello\n"})})

    assert response.status_code == 422
    assert json.loads(response.content)["error"] == "no_skill_found"
    assert "SKILL.md" in json.loads(response.content)["message"]


async def test_a_missing_repository_is_answered_as_such(async_client: AsyncClient, tmp_path: Path) -> None:
    response = await _post(async_client, {"repoUrl": f"file://{tmp_path}/nothing"})

    assert response.status_code == 422
    assert json.loads(response.content)["error"] == "repository_not_found"


@pytest.mark.parametrize("submission_id", [f"sub_{'0' * 32}", "x" * 5000])
async def test_an_unknown_submission_is_404(async_client: AsyncClient, submission_id: str) -> None:
    response = await async_client.get(f"{SUBMISSIONS}/{submission_id}")

    assert response.status_code == 404
    assert response.json()["error"] == "submission_not_found"


async def test_an_address_with_a_password_never_comes_back(async_client: AsyncClient) -> None:
    response = await _post(async_client, {"repoUrl": "https://someone:hunter2@github.com/a/b"})

    assert response.status_code == 400
    assert b"hunter2" not in response.content


async def test_a_list_of_an_address_that_nobody_can_have_submitted_is_empty(async_client: AsyncClient) -> None:
    response = await async_client.get(f"{SUBMISSIONS}?repoUrl=a%EF%BF%BDb")

    assert (response.status_code, response.json()) == (200, {"items": [], "nextCursor": None})


async def test_the_newest_submissions_are_listed(async_client: AsyncClient, tmp_path: Path) -> None:
    url = repository(tmp_path, skills("one", "two"))
    await _post(async_client, {"repoUrl": url})
    listed = (await async_client.get(SUBMISSIONS)).json()["items"]
    filtered = (await async_client.get(SUBMISSIONS, {"repoUrl": "https://elsewhere.example/a/b"})).json()["items"]

    assert {item["skillPath"] for item in listed} == {"one", "two"}
    assert filtered == []


async def test_a_submission_keeps_the_name_of_whoever_sent_a_token_and_does_not_show_it(
    async_client: AsyncClient, env: WorkerEnv, tmp_path: Path
) -> None:
    def make() -> str:
        user = get_user_model()._default_manager.create_user("ada-lovelace")
        return make_token(env, user, name="laptop", scopes=[Scope.SUBMIT])[1]

    bearer = {"Authorization": f"Bearer {await writers.run(make)}"}
    body = json.dumps({"repoUrl": repository(tmp_path, skills("one"))})
    answer = await async_client.post(SUBMISSIONS, body, content_type="application/json", headers=bearer)
    assert answer.status_code == 202
    entry = await SubmissionEntry.objects.aget()
    assert json.loads(entry.value)["submittedBy"] == "ada-lovelace"
    shown = await async_client.get(f"{SUBMISSIONS}/{answer.json()['id']}")
    assert b"lovelace" not in answer.content + shown.content
