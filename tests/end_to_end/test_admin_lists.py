"""Lists of the admin: counted to a bound that is said, and ordered by what an index gives."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.marketplace.factories import publish_example
from tests.submissions.factories import make_submissions
from vskill import read_only_admin
from vskill.environments import WorkerEnv
from vskill.kv.models import KVEntry

pytestmark = pytest.mark.django_db

SKILLS = "/admin/marketplace/skillentry/"
SUBMISSIONS = "/admin/submissions/submissionentry/"


@pytest.fixture
def operator(client: Client, env: WorkerEnv) -> Client:
    """Return the client of an operator, who sees three rows in each list."""
    for number in range(3):
        publish_example(env, name=f"skill-{number}", skill_path=str(number))
        KVEntry(namespace=env.name, key=f"key:{number}", value="1").save()
    make_submissions(env, 3)
    client.force_login(get_user_model().objects.create_superuser("operator"))
    return client


@pytest.mark.parametrize(
    ("address", "name"), [(SKILLS, "skills"), (SUBMISSIONS, "submissions"), ("/admin/kv/kventry/", "KV entries")]
)
def test_a_list_that_is_not_counted_to_its_end_says_so(
    operator: Client, monkeypatch: pytest.MonkeyPatch, address: str, name: str
) -> None:
    assert f"3 {name}" in operator.get(address).content.decode()
    monkeypatch.setattr(read_only_admin, "MOST_COUNTED", 2)
    assert f"2+ {name}" in operator.get(address).content.decode()


def rows_sorted(asked: CaptureQueriesContext) -> list[str]:
    """Return the statements for which SQLite reads all rows of a list and sorts them."""
    found = []
    for one in asked.captured_queries:
        if "ORDER BY" in one["sql"] and one["sql"].startswith("SELECT"):
            with connection.cursor() as cursor:
                cursor.execute("EXPLAIN QUERY PLAN " + one["sql"].replace("%", "%%"), [])
                found += [one["sql"] for row in cursor.fetchall() if "B-TREE FOR ORDER BY" in row[-1]]
    return [sql for sql in found if "skillentry" in sql or "submissionentry" in sql or "kventry" in sql]


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL chooses its plans by the size of the tables")
@pytest.mark.parametrize(
    "address",
    [
        SKILLS,
        f"{SKILLS}?visibility=visible",
        f"{SKILLS}?verdict=clear",
        *(f"{SKILLS}?o={sign}{column}" for sign in ("", "-") for column in range(1, 8)),
        SUBMISSIONS,
        f"{SUBMISSIONS}?state=RECEIVED",
        *(f"{SUBMISSIONS}?o={sign}{column}" for sign in ("", "-") for column in range(1, 6)),
        *(f"/admin/kv/kventry/?o={sign}{column}" for sign in ("", "-") for column in range(1, 5)),
    ],
)
def test_no_order_and_no_filter_sorts_a_whole_list(operator: Client, address: str) -> None:
    with CaptureQueriesContext(connection) as asked:
        page: Any = operator.get(address)
    assert page.context["cl"].result_count == 3
    assert rows_sorted(asked) == []


def test_counts_of_filters_which_take_a_count_of_everything_are_not_offered(operator: Client) -> None:
    page = operator.get(f"{SKILLS}?_facets=True").content.decode()
    assert "Show counts" not in page
    assert "Hide counts" not in page


@pytest.mark.parametrize("order", ["o=1", "o=-1"])
def test_the_pages_of_a_list_hold_each_row_once_in_its_order(
    operator: Client, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    monkeypatch.setattr(read_only_admin.ReadOnlyAdmin, "list_per_page", 1)
    pages = [operator.get(f"{SKILLS}?{order}&p={number}").context["cl"].result_list for number in (1, 2, 3)]
    slugs = [f"skill-{number}" for number in range(3)]
    assert [row.slug for [row] in pages] == (slugs if order == "o=1" else slugs[::-1])
    address = operator.get(f"{SKILLS}?{order}&p=2").context["cl"].url_for_result(pages[1][0])
    assert operator.get(address).status_code == 200
