"""No request makes the server fail: every route, with hostile paths, queries, headers and bodies.

The seeds are fixed, so that every run tries the same requests; ``--hypothesis-seed`` tries others.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

import pytest
from django.contrib.auth import get_user_model
from django.test import Client, override_settings
from django.urls import resolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from marketplace.models.reports import VisitorReport
from marketplace.skills.blocklist import BlockKind, add_block
from submissions.states import State
from tests.marketplace.factories import publish_example
from tests.routes import PLACE, every_route
from tests.submissions.factories import make_submission
from vskill.environments import WorkerEnv, get_environment
from vskill.kv.cursors import encode_cursor

pytestmark = pytest.mark.django_db(transaction=True)

ROUTES: Final = every_route()
PUBLIC: Final = [route for route in ROUTES if not route.startswith("/admin/")]
STAFF: Final = [route for route in ROUTES if route.startswith("/admin/") and "logout" not in route]
# A run visits each staff page with a seventh of the hostile values.
SHARDS: Final = 7
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "OPTIONS")
# Of processor time. A page takes a few hundredths.
MOST_SECONDS: Final = 2.0

HOSTILE: Final = (
    *("\0", "%00", "%2500", "\ud800", "a\u202eb", "x" * 300, "\u00e9" * 300, "-1", "0", "9" * 30, "1" * 5000, "1_2"),
    *("..", "a/b", "@a", "a@b", ":", "skill:alias:x", "'\"<>", "null", "[]", "{", "\n", "\x1b[31m", "*", "%s", "_5F"),
    *("https://[x", "https://[::1", "https://h:99999/a/b", "https://h:x/a/b", "https://h/%00/b", "https://h/%2500/b"),
    *("https://e.org/a b/c", "https://e.org/a%20b/c", "https:///", "file:///", "file:///" + "y" * 300, "ssh://x"),
    *("hello-skill", "0.0.1", "0.0.1.zip", "latest.tar.gz", "SKILL.md", "acme", "sub_x", "requeue", "quarantine", "1"),
)
POSITIONS: Final[list[list[Any]]] = [
    ["0001-01-01T00:00:00+23:59", 1],
    ["9999-12-31T23:59:59-23:59", 1],
    [None, None],
    [[], {}],
    ["\0", 2**63],
    [],
]
CURSORS: Final = tuple(encode_cursor("x", *position) for position in POSITIONS)
NAMES: Final = (
    *("q", "cursor", "sort", "limit", "slug", "version", "tag", "hash", "path", "from", "to", "owner", "ownerHandle"),
    *("name", "repoUrl", "repository", "repository_url", "fragment", "publisher", "verdict", "capability", "view"),
    *("mode", "prefix", "license", "ids", "state", "movement", "visibility", "entries", "kind", "outcome", "p", "o"),
    *("e", "_changelist_filters", "_facets", "all", "key", "key__startswith", "id__in", "app_label", "next", "_popup"),
)
FIELDS: Final = ("repoUrl", "skillPath", "skillName", "skills", "token", "paths", "repository_url", "reason", "action")
ADMIN_FIELDS: Final = ("_selected_action", "select_across", "index", "username", "password", "kind", "value", "ids")
REPORTED: Final = "/skills/hello-skill"
REPORT: Final = {"reason": "malicious", "evidence": "It sends what it reads away.", "contact": "", "version": "0.0.1"}
HEADERS: Final = ("If-None-Match", "Accept", "Cookie", "Content-Length", "X-Forwarded-For", "Origin", "Host", "Range")

texts = st.one_of(st.sampled_from(HOSTILE), st.sampled_from(CURSORS), st.text(max_size=40))
values = st.recursive(
    texts | st.none() | st.integers() | st.floats(), lambda one: st.lists(one, max_size=3), max_leaves=4
)
fixed = settings(
    max_examples=120, derandomize=True, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def filled(env: WorkerEnv, tmp_path: Path) -> Iterator[WorkerEnv]:
    """Fill the tables with a row of each kind; every repository is looked for below a folder that is empty."""
    policy = {"source_file_roots": [str(tmp_path)], "source_rewrites": [["https://", f"file://{tmp_path}/"]]}
    with override_settings(VSKILL_ENVIRONMENTS={"default": {"hosts": ["testserver"], "policy": policy}}):
        found = get_environment("default")
        publish_example(found)
        publish_example(found, body="It has changed.")
        make_submission(found, State.PUBLISHED, message=True)
        make_submission(found, State.ON_HOLD)
        add_block(found, BlockKind.OWNER, "example.org/evil", actor="test", reason="evil")
        yield found


@pytest.fixture
def visitor() -> Client:
    """Return a client that reports what the server answers, failures too."""
    return Client(raise_request_exception=False)


@pytest.fixture
def staff(visitor: Client) -> Client:
    """Return a client that is logged in as an operator who may do everything."""
    visitor.force_login(get_user_model().objects.create_superuser("root", "", "long enough to pass"))
    return visitor


def filled_in(route: str, parts: list[str]) -> str:
    """Return the path of ``route`` with ``parts`` in its places, quoted."""
    for part in parts:
        route = route.replace(PLACE, quote(part.encode("utf-8", "surrogatepass"), safe="/"), 1)
    return route.replace(PLACE, "x")


def ask(client: Client, method: str, path: str, **options: Any) -> None:
    """Send one request and check that it is answered, and without much work."""
    before = time.process_time()
    answer = client.generic(method, path, **options)
    if getattr(answer, "streaming", False):
        b"".join(answer.streaming_content)  # type: ignore[attr-defined]  # the stubs know no streamed answer
    spent = time.process_time() - before
    # 503 says that something is away: the consumer of /healthz, or the host of a repository.
    assert answer.status_code < 500 or answer.status_code == 503, (method, path, options, answer.content[:500])
    assert spent < MOST_SECONDS, (method, path, options, spent)


def query_of(pairs: list[tuple[str, str]]) -> str:
    return urlencode([(name, value.encode("utf-8", "surrogatepass")) for name, value in pairs])


def staff_requests(number: int, seed: int) -> list[tuple[str, str]]:
    """Return the staff pages, each with a method, that one run visits with the hostile value of this number.

    All values together visit every page, with GET and with POST. Other seeds spread the values otherwise.
    """
    own = range((seed - number) % SHARDS, len(STAFF), SHARDS)
    return [(("GET", "POST")[(number // SHARDS) % 2], STAFF[index]) for index in own]


@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_every_staff_page_is_visited_with_each_method(seed: int) -> None:
    visited = {request for number in range(len(HOSTILE)) for request in staff_requests(number, seed)}
    assert visited == {(method, route) for method in ("GET", "POST") for route in STAFF}


def test_the_routes_are_addresses_that_lead_somewhere() -> None:
    for route in ROUTES:
        resolve(route.replace(PLACE, "submissions"))
    assert {"/admin/", "/admin/{}/", "/admin/submissions/submissionentry/operate/{}/"} <= set(STAFF)


@pytest.mark.parametrize("third", range(3))
def test_no_route_fails_on_a_hostile_part(
    filled: WorkerEnv, staff: Client, third: int, pytestconfig: pytest.Config
) -> None:
    chosen = str(pytestconfig.getoption("--hypothesis-seed") or "0")
    seed = int(chosen) if chosen.isdecimal() else 0
    for number, value in list(enumerate(HOSTILE))[third::3]:
        query = query_of([(name, value) for name in NAMES])
        for route in PUBLIC:
            ask(staff, "GET", filled_in(route, [value] * 4) if PLACE in route else f"{route}?{query}")
        posted = query_of([(name, value) for name in (*FIELDS, *ADMIN_FIELDS)])
        for method, route in staff_requests(number, seed):
            path = f"{filled_in(route, [value] * 2)}?{query}"
            sent = {"data": posted, "content_type": "application/x-www-form-urlencoded"} if method == "POST" else {}
            ask(staff, method, path, **sent)
        for name in ("repoUrl", "name"):
            ask(staff, "GET", f"/api/v1/blocklist/check?{query_of([(name, value)])}")
        body = json.dumps(dict.fromkeys(FIELDS, value))
        ask(staff, "POST", "/api/v1/submissions", data=body, content_type="application/json")
        names = json.dumps({"skills": [{"name": value, "currentVersion": value}]})
        ask(staff, "POST", "/api/v1/skills/check-updates", data=names, content_type="application/json")
        form = query_of([(name, value) for name in ("repository_url", "paths")])
        ask(staff, "POST", "/submit", data=form, content_type="application/x-www-form-urlencoded")
        # A report with one hostile field, and one with nothing else.
        for fields in ({**REPORT, list(REPORT)[number % len(REPORT)]: value}, dict.fromkeys(REPORT, value)):
            report = query_of(list(fields.items()))
            ask(staff, "POST", f"{REPORTED}/report", data=report, content_type="application/x-www-form-urlencoded")
    # What was stored of these is shown.
    stored = list(VisitorReport.objects.values_list("reference", flat=True))
    assert stored
    for reference in stored:
        ask(staff, "GET", f"/reports/{reference}")
    ask(staff, "GET", "/admin/marketplace/visitorreport/")


@fixed
@given(
    route=st.sampled_from(PUBLIC),
    method=st.sampled_from(METHODS),
    parts=st.lists(texts, min_size=4, max_size=4),
    query=st.lists(st.tuples(st.sampled_from(NAMES), texts), max_size=4),
    headers=st.dictionaries(st.sampled_from(HEADERS), texts, max_size=2),
    body=st.one_of(st.binary(max_size=60), st.dictionaries(st.sampled_from(FIELDS), values).map(json.dumps)),
)
def test_no_public_route_fails(
    filled: WorkerEnv,
    visitor: Client,
    route: str,
    method: str,
    parts: list[str],
    query: list[tuple[str, str]],
    headers: dict[str, str],
    body: bytes | str,
) -> None:
    path = f"{filled_in(route, parts)}?{query_of(query)}"
    # As a server hands them over: latin-1.
    sent = {name: value.encode("utf-8", "replace").decode("latin-1") for name, value in headers.items()}
    ask(visitor, method, path, data=body, content_type="application/json", headers=sent)


@fixed
@given(
    route=st.sampled_from(STAFF),
    method=st.sampled_from(("GET", "POST")),
    parts=st.lists(texts, min_size=2, max_size=2),
    query=st.lists(st.tuples(st.sampled_from(NAMES), texts), max_size=4),
    form=st.lists(st.tuples(st.sampled_from((*FIELDS, *ADMIN_FIELDS)), texts), max_size=5),
)
def test_no_staff_page_fails(
    filled: WorkerEnv,
    staff: Client,
    route: str,
    method: str,
    parts: list[str],
    query: list[tuple[str, str]],
    form: list[tuple[str, str]],
) -> None:
    path = f"{filled_in(route, parts)}?{query_of(query)}"
    ask(staff, method, path, data=query_of(form), content_type="application/x-www-form-urlencoded")
