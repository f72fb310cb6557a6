"""Pages and calls whose statements never end: what the visitor is told, and what still answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest
from django.db import connection
from django.test import Client, override_settings

from tests.marketplace.factories import publish_example
from tests.marketplace.pages.endless_search import WORD, make_endless, make_usual
from vskill.environments import WorkerEnv
from vskill.kv.threads import close_database_threads
from vskill.visitors.reads import ended_early, list_reads

pytestmark = pytest.mark.django_db(transaction=True)
SOON = 0.05


@pytest.fixture(autouse=True)
def _endless_search(env: WorkerEnv) -> Iterator[None]:
    publish_example(env, name="found")
    with connection.cursor() as cursor:
        for statement in make_endless(env.name, connection.vendor):
            cursor.execute(statement)
    try:
        yield
    finally:
        close_database_threads()
        with connection.cursor() as cursor:
            for statement in make_usual(connection.vendor):
                cursor.execute(statement)


def test_a_page_that_takes_too_long_is_a_503_that_says_what_helps(caplog: pytest.LogCaptureFixture) -> None:
    before = ended_early().get("too_slow", 0)
    with override_settings(VISITOR_SECONDS=SOON):
        answer = Client().get(f"/skills?q={WORD}")

    assert (answer.status_code, answer["Retry-After"]) == (503, "10")
    assert answer["Content-Type"].startswith("text/html")
    assert "took too long to read this and stopped" in answer.text
    assert "too_slow at /skills" in caplog.messages
    assert ended_early()["too_slow"] == before + 1


@pytest.mark.parametrize("path", ["/api/v1/search", "/api/v1/skills", "/api/search", "/api/v1/skills/search"])
def test_a_call_that_takes_too_long_is_answered_as_its_clients_print_errors(path: str) -> None:
    with override_settings(VISITOR_SECONDS=SOON):
        answer = Client().get(path, {"q": WORD})

    assert (answer.status_code, answer["Retry-After"]) == (503, "10")
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.text.startswith("The registry took too long to read this and stopped.")


def test_after_it_other_lists_and_pages_answer() -> None:
    with override_settings(VISITOR_SECONDS=SOON):
        assert [Client().get(f"/skills?q={WORD}").status_code for _ in range(3)] == [503, 503, 503]
    assert Client().get("/skills").status_code == 200
    assert Client().get("/skills/found").status_code == 200


def test_the_api_of_submissions_says_in_json_that_no_thread_was_free() -> None:
    begun, released = threading.Event(), threading.Event()

    def occupy() -> bool:
        begun.set()
        return released.wait(60)

    with override_settings(LIST_WORKERS=1):
        occupying = threading.Thread(target=list_reads.run_sync, args=(occupy,))
        occupying.start()
        begun.wait()
        with override_settings(VISITOR_WAIT=SOON):
            answer = Client().get("/api/v1/submissions")
        released.set()
        occupying.join()

    assert (answer.status_code, answer["Retry-After"]) == (503, "10")
    assert json.loads(answer.text)["error"] == "too_busy"
