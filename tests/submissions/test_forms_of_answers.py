"""Every route for programs: conditional reads, what other origins and caches may do, and errors in one form each."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from django.apps import apps
from django.contrib.auth import get_user_model
from django.test import Client, override_settings
from django.utils import timezone

from submissions.states import State
from submissions.store.queries import read_submission
from submissions.store.transitions import transition
from tests.marketplace.provenance.signing_registry import signing_with
from tests.routes import PLACE, every_route
from tests.submissions.api.staff.staff import OPERATE, REVIEW
from tests.submissions.api.test_described import Registry, reads
from tests.submissions.factories import make_submission
from vskill.access_tokens.models import AccessToken
from vskill.access_tokens.scopes import Scope
from vskill.access_tokens.tokens import make_token, revoke
from vskill.environments import WorkerEnv, get_environment
from vskill.rate_limits.kinds import Form, Kind, form_of
from vskill.web.request_limits import LimitBodies

pytestmark = pytest.mark.django_db(transaction=True)

OF_STAFF: Final = (REVIEW, OPERATE)
# They answer for one account, and no cache keeps them.
OF_ACCOUNTS: Final = [path for path, operation in reads() if "security" in operation or path in ("/api/v1/whoami")]
# Archives that are made for whoever asks.
MADE: Final = ("/api/v1/skills/-/scan/{scan_id}/download", "/api/v1/skills/-/scan/download/{slug}")
PUBLIC_READS: Final = [path for path, _operation in reads() if path not in (*OF_ACCOUNTS, *MADE)]
ROUTES: Final = [route.replace(PLACE, "none") for route in every_route() if not route.startswith("/admin/")]
OF_PROGRAMS: Final = [path for path in ROUTES if form_of(path) is not Form.PAGE]
CACHED: Final = re.compile(r"no-cache|public, max-age=\d+(, immutable)?")


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with signing_with(tmp_path / "keys.pem") as env:
        yield Registry(env)


def varies(answer: Any) -> set[str]:
    return {one.strip().lower() for one in answer.headers.get("Vary", "").split(",")}


def test_every_public_read_is_conditional_and_open_to_other_origins(registry: Registry) -> None:
    client = Client()
    assert len(PUBLIC_READS) > 50
    for path in PUBLIC_READS:
        address = registry.address(path)
        first = client.get(address)
        etag = first.headers.get("ETag", "")
        assert (first.status_code, etag.startswith('"')) == (200, True), path
        assert CACHED.fullmatch(first.headers["Cache-Control"]), (path, first.headers["Cache-Control"])
        assert client.head(address).headers["ETag"] == etag, path
        for known in (etag, f"W/{etag}", f'"x", {etag}', "*"):
            again = client.get(address, headers={"If-None-Match": known})
            assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", etag), (path, known)
            assert again.headers["Cache-Control"] == first.headers["Cache-Control"], path
            assert again.headers["Access-Control-Allow-Origin"] == "*", path
            assert {"cookie", "authorization"} <= varies(again), path
        assert client.get(address, headers={"If-None-Match": '"x"'}).status_code == 200, path
        assert first.headers["Access-Control-Allow-Origin"] == "*", path
        assert {"cookie", "authorization"} <= varies(first), path


def test_what_is_answered_to_somebody_is_never_for_caches_between(registry: Registry, env: WorkerEnv) -> None:
    user: Any = get_user_model()._default_manager.create_superuser("root")
    token = make_token(env, user, name="script", scopes=list(Scope))[1]
    session = Client()
    session.force_login(user)
    stranger: Any = get_user_model()._default_manager.create_user("nobody")
    nobody = Client()
    nobody.force_login(stranger)
    bearer = Client(headers={"Authorization": f"Bearer {token}"})
    for path in (*PUBLIC_READS, *OF_ACCOUNTS, *MADE):
        for client in (session, nobody, bearer):
            answer = client.get(registry.address(path))
            kept = answer.headers["Cache-Control"]
            assert "private" in kept or "no-store" in kept, (path, kept)
            assert "public" not in kept, (path, kept)
            assert {"cookie", "authorization"} <= varies(answer), path
            if path in PUBLIC_READS:
                again = client.get(registry.address(path), headers={"If-None-Match": answer.headers["ETag"]})
                assert (again.status_code, again.headers["Cache-Control"]) == (304, kept), path


def test_a_submission_that_moves_has_another_etag(env: WorkerEnv) -> None:
    client = Client()
    one = make_submission(env)
    addresses = [f"/api/v1/submissions/{one.id}", "/api/v1/submissions"]
    before = [client.get(address).headers["ETag"] for address in addresses]
    moved = transition(env, one, State.ON_HOLD, reason="test", actor="test", trigger="test")
    for address, etag in zip(addresses, before, strict=True):
        answer = client.get(address, headers={"If-None-Match": etag})
        assert (answer.status_code, answer.headers["ETag"] != etag) == (200, True)
    assert read_submission(env, one.id).version == moved.version


def test_every_route_answers_options_with_what_it_offers() -> None:
    client = Client()
    for path in ROUTES:
        answer = client.options(path)
        offered = answer.headers.get("Allow", "").split(", ")
        assert (answer.status_code, answer.content, offered[-1]) == (204, b"", "OPTIONS"), path
        # The others are refused, in words and with the same list.
        refused = client.patch(path)
        assert (refused.status_code, refused.headers["Allow"].split(", ")) == (405, offered[:-1]), path
        assert refused.content, path
        read_by_others = path in OF_PROGRAMS and "GET" in offered and not path.startswith(OF_STAFF)
        assert (answer.headers.get("Access-Control-Allow-Origin") == "*") == read_by_others, path
        if read_by_others:
            assert answer.headers["Access-Control-Allow-Methods"] == "GET, HEAD", path
            assert "If-None-Match" in answer.headers["Access-Control-Allow-Headers"], path


def in_text(content: str, _status: int) -> bool:
    return bool(content.strip()) and content[:1] not in "{<["


def in_json(content: str, _status: int) -> bool:
    told = json.loads(content)
    # The last is for clients of RFC 8628, which say what they were told.
    return bool({"error", "message"} <= told.keys() <= {"error", "message", "retryAfter", "near", "error_description"})


def in_problem(content: str, status: int) -> bool:
    told = json.loads(content)
    return bool(told.keys() == {"type", "title", "status", "detail"} and told["status"] == status)


def in_rpc(content: str, _status: int) -> bool:
    told = json.loads(content)
    return bool(told.keys() == {"jsonrpc", "id", "error"} and told["error"]["message"])


FORMS: Final[dict[Form, tuple[str, Callable[[str, int], bool]]]] = {
    Form.TEXT: ("text/plain", in_text),
    Form.JSON: ("application/json", in_json),
    Form.PROBLEM: ("application/problem+json", in_problem),
    Form.RPC: ("application/json", in_rpc),
}


def check_form(path: str, status: int, media: str, content: bytes) -> None:
    """Check that an error has the form of the clients of its address."""
    kind, has_form = FORMS[form_of(path)]
    assert media.partition(";")[0] == kind, (path, status, media)
    assert has_form(content.decode(), status), (path, status, content[:200])


def test_each_dialect_has_one_form_for_what_is_not_there_not_offered_and_too_often() -> None:
    assert {form_of(path) for path in OF_PROGRAMS} == set(FORMS)
    client = Client(raise_request_exception=False)
    missing = set()
    for path in OF_PROGRAMS:
        answers = [client.patch(path), client.get(path), client.post(path, "{}", content_type="application/json")]
        for answer in answers:
            if answer.headers.get("Content-Type", "").startswith("image/"):
                # A badge stands in somebody's text, and says so itself.
                assert (path, answer.status_code) == ("/skills/none/badge.svg", 404)
            elif answer.status_code in (400, 401, 403, 404, 405):
                check_form(path, answer.status_code, answer.headers["Content-Type"], answer.content)
                missing.add((answer.status_code, form_of(path)))
    for form in (Form.TEXT, Form.JSON, Form.PROBLEM):
        assert {(404, form), (405, form)} <= missing
    assert (405, Form.RPC) in missing
    nowhere = {
        "/api/nothing": Form.TEXT,
        "/api/v1/nothing": Form.TEXT,
        "/api/v1/submissions/a/b/c": Form.JSON,
        "/api/v1/review/a/b/c": Form.JSON,
        "/api/cli/device/x": Form.JSON,
        "/api/apm/v1/packages/a": Form.PROBLEM,
    }
    for path, form in nowhere.items():
        answer = client.get(path)
        assert (answer.status_code, form_of(path)) == (404, form), path
        check_form(path, 404, answer.headers["Content-Type"], answer.content)
    with override_settings(RATE_LIMITS=dict.fromkeys(Kind, "1/hour")):
        for path in OF_PROGRAMS:
            for ask in (client.get, client.post):
                answer = [ask(path) for _number in range(2)][1]
                if answer.status_code != 429:
                    # What is sent to an address that is only looked at counts as a read, and the other way round.
                    answer = ask(path)
                assert answer.status_code == 429, path
                check_form(path, 429, answer.headers["Content-Type"], answer.content)


def test_a_body_that_is_too_long_is_refused_in_the_form_of_each_address() -> None:
    async def refused(path: str) -> list[dict[str, Any]]:
        sent: list[dict[str, Any]] = []

        async def nothing() -> dict[str, Any]:
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(dict(message))

        async def unreached(*_arguments: Any) -> None:
            raise AssertionError("the body is refused before anybody reads it")

        scope = {"type": "http", "method": "POST", "path": path, "headers": [(b"content-length", b"999999999")]}
        await LimitBodies(unreached)(scope, nothing, send)
        return sent

    for path in OF_PROGRAMS:
        start, body = asyncio.run(refused(path))
        headers = dict(start["headers"])
        assert start["status"] == 413, path
        assert int(headers[b"content-length"]) == len(body["body"]), path
        check_form(path, 413, headers[b"content-type"].decode(), body["body"])


def test_a_token_that_opens_nothing_is_refused_in_the_form_of_each_address_and_nothing_is_written() -> None:
    two = {"default": {"hosts": ["testserver"]}, "other": {"hosts": ["other.test"]}}
    with override_settings(VSKILL_ENVIRONMENTS=two, ALLOWED_HOSTS=["testserver", "other.test"]):
        user: Any = get_user_model()._default_manager.create_superuser("root")
        made = {
            state: make_token(get_environment(where), user, name=state, scopes=list(Scope))
            for state, where in (("revoked on", "default"), ("expired on", "default"), ("no such token", "other"))
        }
        revoke(made["revoked on"][0], actor="root", reason="lost")
        AccessToken.objects.filter(pk=made["expired on"][0].pk).update(expires_at=timezone.now())
        before = counts()
        for said, (_row, token) in made.items():
            client = Client(headers={"Authorization": f"Bearer {token}"})
            for path in OF_PROGRAMS:
                for answer in (client.get(path), client.post(path, "{}", content_type="application/json")):
                    assert answer.status_code == 401, (path, said)
                    assert said in answer.content.decode(), path
                    assert token not in answer.content.decode(), path
                    assert answer.headers["WWW-Authenticate"].endswith('error="invalid_token"'), path
                    check_form(path, 401, answer.headers["Content-Type"], answer.content)
        assert counts() == before


def counts() -> dict[str, int]:
    """Return the number of rows of every table that requests write, but for the counts of requests themselves."""
    models = [one for one in apps.get_models() if one._meta.app_label != "rate_limits"]
    return {one._meta.label: one._default_manager.count() for one in models}
