"""Every list of the API is read page by page: exactly, whatever is written meanwhile, and by no forged cursor."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import pytest
from asgiref.sync import async_to_sync
from django.test import Client

from marketplace.catalog import quarantine_skill
from marketplace.skill_sets.editing import Choice, Told, create_collection
from marketplace.skills.blocklist import BlockKind, add_block, remove_block
from submissions.discovery import DiscoveredSkill, Discovery
from submissions.jobs.records import Job
from submissions.jobs.work import run_job, start_job
from submissions.listings import keep_listing
from submissions.states import State
from submissions.store.queries import read_submission
from submissions.store.transitions import transition
from tests.marketplace.factories import publish_example
from tests.submissions.api.staff.staff import OPERATE, REVIEW, token_of
from tests.submissions.api.test_described import DOCUMENT, reads
from tests.submissions.factories import make_submissions
from vskill.access_tokens.scopes import Scope
from vskill.accounts.roles import Role
from vskill.environments import WorkerEnv
from vskill.kv.cursors import encode_cursor
from vskill.kv.threads import writers

pytestmark = pytest.mark.django_db(transaction=True)

WHO: Final[dict[str, Any]] = {"actor": "test", "reason": "test"}
# What is answered as a list and has an end that is known, by the property that is the list.
BOUNDED: Final = {
    "search results": "the best that were scored; the list of skills takes the same words and has a cursor",
    "searchForVskill results": "likewise",
    "search notSearched": "words of one query",
    "searchForVskill notSearched": "likewise",
    "skill install": "one for each client",
    "logEntries entries": "by start and end, which count the entries of a log that only grows",
    "logInclusion hashes": "one proof",
    "logConsistency hashes": "one proof",
    "verify reasons": "of one version",
    "collection skills": "as many as its operator chose, 100 at most",
    "collection install": "one for each client",
    "comparison files": "those of two versions",
    "externalScans items": "one for each scanner",
    "alike items": "the five that are most alike",
    "scans items": "the newest 50 of each scanner",
    "provenance log": "what the log says of one version",
    "submission history": "the steps of one submission",
    "reviewOne findings": "of one package",
    "reviewOne history": "the steps of one submission",
    "operateSubmissionRead history": "likewise",
    "operateSkillRead history": "the newest 100 events",
    "incomingTransfers transfers": "open offers to one account, 200 at most, in the form of a client without cursors",
    "outgoingTransfers transfers": "likewise",
    "listing folders": "the nearest ones, 500 at most",
}


def lists_of(operation: dict[str, Any]) -> list[str]:
    """Return the names of the lists that an operation answers with."""
    content = operation["responses"]["200"].get("content", {}).get("application/json", {})
    fields = content.get("schema", {}).get("properties", {})
    return [name for name, schema in fields.items() if schema.get("type") == "array"]


def has_cursor(operation: dict[str, Any]) -> bool:
    return "cursor" in {one["name"] for one in operation.get("parameters", ())}


def test_every_list_has_a_cursor_or_is_bounded() -> None:
    without = set()
    for _path, operation in reads():
        fields = operation["responses"]["200"].get("content", {}).get("application/json", {}).get("schema", {})
        assert has_cursor(operation) == ("nextCursor" in fields.get("properties", {})), operation["operationId"]
        for name in lists_of(operation):
            base = operation["operationId"].removesuffix("OfPublisher").removesuffix("InRepository")
            if not has_cursor(operation) or f"{base} {name}" in BOUNDED:
                without.add(f"{base} {name}")
    assert without == set(BOUNDED)


class Lists:
    """Something for each list, three of each at least, and the address of it."""

    def __init__(self, env: WorkerEnv) -> None:
        """Publish, hold, block and submit."""
        self.env = env
        for number in range(3):
            publish_example(env, body=f"Number {number}.")
            publish_example(env, name=f"other-{number}")
            add_block(env, BlockKind.CONTENT, str(number) * 64, **WHO)
            told = Told(f"Set {number}", "At work.", (Choice("hello-skill"),))
            create_collection(env, f"set-{number}", told, **WHO)
        make_submissions(env, 3)
        found = tuple(DiscoveredSkill(f"skills/{name}", name, "Does it.", (), name * 64) for name in "abc")
        discovery = Discovery("https://github.com/acme/skills", "1" * 40, found, "HEAD")
        self.listing = async_to_sync(keep_listing)(env, discovery)

        async def start() -> Job:
            return await writers.run(start_job, env, discovery, source="api", actor="test")

        self.job = async_to_sync(start)().id
        self.staff = token_of(env, Role.ADMIN, Scope.REVIEW, Scope.OPERATE)

    def read(self, path: str, **query: str) -> Any:
        address = path.replace("{owner}/{repo}", "acme/skills").replace("{owner}", "acme")
        address = address.replace("{slug}", "hello-skill").replace("{listing_id}", self.listing)
        address = address.replace("{job_id}", self.job)
        headers = {"Authorization": f"Bearer {self.staff}"} if path.startswith((REVIEW, OPERATE)) else {}
        return Client().get(address, query, headers=headers)


def test_no_forged_cursor_is_taken_by_any_list(env: WorkerEnv) -> None:
    lists = Lists(env)
    paths = [path for path, operation in reads() if has_cursor(operation)]
    assert len(paths) == 12
    of_others = {path: lists.read(path, limit="1").json()["nextCursor"] for path in paths}
    positions: list[tuple[Any, ...]] = [(1,), ("a",), ("2026-01-01T00:00:00+00:00", 1), (None, [])]
    forged = [
        *("x", "1", "50", "ä", "=" * 40, "set-1", "hello-skill", "9" * 400),
        *(encode_cursor("x", *position) for position in positions),
    ]
    for path in paths:
        for cursor in (*forged, *(one for other, one in of_others.items() if one and not is_same(other, path))):
            answer = lists.read(path, cursor=cursor)
            assert answer.status_code == 400, (path, cursor, answer.content[:200])
            assert b"cursor" in answer.content, path
        own = of_others[path]
        if own is not None:
            # Cut, or changed by one letter, it is no cursor either.
            for changed in (own[:-2], f"{own[:8]}{'A' if own[8] != 'A' else 'B'}{own[9:]}"):
                assert lists.read(path, cursor=changed).status_code == 400, path


def is_same(one: str, other: str) -> bool:
    """Return whether two addresses are of one list: a skill has three forms of its address."""
    return one == other or one.rpartition("/")[2] == other.rpartition("/")[2] == "versions"


def read_all(
    path: str, name: str, key: str, meanwhile: Callable[[int], None] = lambda _page: None, **query: str
) -> list[str]:
    """Return one value of each row of a list that is read two by two; ``meanwhile`` happens after each page."""
    found: list[str] = []
    cursor, number = "", 0
    while True:
        page = Client().get(path, {**query, "limit": "2", **({"cursor": cursor} if cursor else {})}).json()
        found += [one[key] for one in page[name]]
        if page["nextCursor"] is None:
            return found
        cursor, number = page["nextCursor"], number + 1
        meanwhile(number)


def test_submissions_are_listed_exactly_while_others_arrive(env: WorkerEnv) -> None:
    url = "https://github.com/acme/skills"
    ids = make_submissions(env, 5, age=timedelta(minutes=1), repoUrl=url)
    newest_first = ids[::-1]
    assert (
        read_all("/api/v1/submissions", "items", "id", lambda _page: make_submissions(env, 1).clear()) == newest_first
    )
    assert read_all("/api/v1/submissions", "items", "id", repoUrl=url) == newest_first
    assert read_all("/api/v1/submissions", "items", "id", repoUrl="https://github.com/none/none") == []
    assert Client().get("/api/v1/submissions", {"limit": "many"}).status_code == 400
    # A cursor belongs to the list of its repository.
    cursor = Client().get("/api/v1/submissions", {"limit": "1", "repoUrl": url}).json()["nextCursor"]
    assert Client().get("/api/v1/submissions", {"cursor": cursor}).json()["error"] == "invalid_cursor"


def test_the_block_list_is_read_exactly_over_both_of_its_parts(env: WorkerEnv) -> None:
    digests = [digit * 64 for digit in "13579"]
    for digest in digests:
        add_block(env, BlockKind.CONTENT, digest, **WHO)
    for number in range(4):
        publish_example(env, name=f"bad-{number}")
        quarantine_skill(env, f"bad-{number}", **WHO)
    add_block(env, BlockKind.OWNER, "github.com/mallory", **WHO)

    def change(page: int) -> None:
        if page == 1:
            # One before what was read, one behind it, and one of what was read is taken off.
            add_block(env, BlockKind.CONTENT, "0" * 64, **WHO)
            add_block(env, BlockKind.CONTENT, "8" * 64, **WHO)
            remove_block(env, BlockKind.CONTENT, digests[0], **WHO)
        if page == 4:
            publish_example(env, name="bad-9")
            quarantine_skill(env, "bad-9", **WHO)
            # It is changed again, and stays in its place.
            quarantine_skill(env, "bad-0", actor="test", reason="worse")

    contents = [*digests[:4], "8" * 64, digests[4]]
    seen: list[dict[str, Any]] = []
    cursor, number = "", 0
    while True:
        page = Client().get("/api/v1/blocklist", {"limit": "2", **({"cursor": cursor} if cursor else {})}).json()
        assert page["count"] == len(page["entries"]) <= 2
        seen += page["entries"]
        if page["nextCursor"] is None:
            break
        cursor, number = page["nextCursor"], number + 1
        change(number)
    assert [one.get("contentHash") or one["skillName"] for one in seen] == [
        *contents,
        *(f"bad-{number}" for number in (3, 2, 1, 0)),
    ]
    # A client that knows of no cursor reads all of it at once.
    whole = Client().get("/api/v1/blocklist").json()
    assert (whole["count"], whole["nextCursor"]) == (11, None)


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_the_block_list_ends_where_its_first_part_fills_a_page(env: WorkerEnv, limit: int) -> None:
    for digit in "12":
        add_block(env, BlockKind.CONTENT, digit * 64, **WHO)
    found, cursor, page = 0, "", {}
    for _page in range(5):
        page = Client().get("/api/v1/blocklist", {"limit": str(limit), **({"cursor": cursor} if cursor else {})}).json()
        found += page["count"]
        if page["nextCursor"] is None:
            break
        assert page["count"] == limit
        cursor = page["nextCursor"]
    assert found == 2
    assert page["nextCursor"] is None


def test_versions_and_collections_are_listed_exactly_while_others_are_made(env: WorkerEnv) -> None:
    for number in range(5):
        publish_example(env, body=f"Number {number}.")
        create_collection(env, f"set-{number}", Told(f"Set {number}", "At work.", (Choice("hello-skill"),)), **WHO)

    def add(page: int) -> None:
        publish_example(env, body=f"Meanwhile {page}.")
        create_collection(env, f"a-{page}", Told("Before", "At work.", (Choice("hello-skill"),)), **WHO)

    found = read_all("/api/v1/skills/hello-skill/versions", "items", "version", add)
    assert found == [f"0.0.{number}" for number in (5, 4, 3, 2, 1)]
    assert read_all("/api/v1/collections", "items", "slug", lambda page: add(page + 10))[-5:] == [
        f"set-{number}" for number in range(5)
    ]


def test_a_narrowed_list_of_a_job_loses_nothing_while_its_skills_move_on(env: WorkerEnv) -> None:
    names = [f"s{number}" for number in range(6)]
    found = tuple(DiscoveredSkill(f"skills/{name}", name, "Does it.", (), "0" * 64) for name in names)
    discovery = Discovery("https://github.com/acme/skills", "1" * 40, found, "HEAD")

    async def start() -> Job:
        return await writers.run(start_job, env, discovery, source="api", actor="test")

    job = async_to_sync(start)().id
    address = f"/api/v1/jobs/{job}"
    assert read_all(address, "skills", "skillName") == names
    async_to_sync(run_job)(env, job)
    assert read_all(address, "skills", "skillName", standing="waiting") == []

    def hold(page: int) -> None:
        # What was read, and the last one, which was not.
        for one in Client().get(address).json()["skills"]:
            if one["skillName"] in (*names[: 2 * page], "s5") and one["state"] == State.RECEIVED:
                held = read_submission(env, one["submissionId"])
                transition(env, held, State.ON_HOLD, reason="test", actor="test", trigger="test")

    assert read_all(address, "skills", "skillName", hold, standing="active") == names[:5]
    assert len(read_all(address, "skills", "skillName", standing="held")) == 5
    # A cursor of the whole list is none of the narrowed one, which counts other rows.
    cursor = Client().get(f"/api/v1/jobs/{job}", {"limit": "1"}).json()["nextCursor"]
    assert Client().get(f"/api/v1/jobs/{job}", {"cursor": cursor, "standing": "waiting"}).status_code == 400


def test_the_parameters_of_pages_are_described() -> None:
    for path, operation in reads():
        names = {one["name"] for one in operation.get("parameters", ())}
        assert ("cursor" in names) <= ("limit" in names), path
    assert "cursor" in {one["name"] for one in DOCUMENT["paths"]["/api/v1/listings"]["post"]["parameters"]}
