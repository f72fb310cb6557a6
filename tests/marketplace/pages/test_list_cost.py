"""What home, list and the pages of publishers ask of the database: few statements, none of which reads every skill."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations, product
from typing import Any, Final

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from marketplace.catalog import SkillFilters, list_skills
from marketplace.models import SkillEntry
from marketplace.models.derived import SkillCount
from marketplace.pages.list_query import FACETS, SORTS, ListQuery
from marketplace.pages.lists import home_context, list_context, publisher_context
from marketplace.skills import filtered, listing
from marketplace.skills.counts import COUNTED_TOGETHER
from marketplace.skills.store import skills_of_identity
from tests.marketplace.factories import publish_example, write_entries
from vskill.accounts.audiences import MEMBERS, seen_as
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db

MOST_STATEMENTS: Final = 12
CHOSEN: Final = {"verdict": "clear", "capability": "shell", "publisher": "acme"}


@pytest.fixture
def shop(env: WorkerEnv) -> None:
    """Publish more skills than a page has room for."""
    for number in range(26):
        publish_example(env, name=f"skill-{number}", skill_path=str(number))


def asked(call: Callable[[], Any]) -> list[str]:
    """Return the statements of a call."""
    with CaptureQueriesContext(connection) as statements:
        call()
    return [one["sql"] for one in statements.captured_queries]


def reads_every_row(statement: str) -> list[str]:
    """Return the steps of SQLite's plan that read a whole table, or a whole environment."""
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN QUERY PLAN " + statement.replace("%", "%%"), [])
        steps = [row[-1] for row in cursor.fetchall()]
    # In these the newest version alone is read, and the newest collections.
    steps = [step for step in steps if "version_newest" not in step and "collection_changed" not in step]
    return [step for step in steps if "SCAN marketplace" in step or step.endswith("(namespace=?)")]


def pages(env: WorkerEnv) -> list[Callable[[], Any]]:
    """Return what reads each page: every choice of filters, in every order, the first page and the next."""
    found: list[Callable[[], Any]] = [partial(home_context, env), partial(publisher_context, env, "acme", "")]
    for names in product((False, True), repeat=len(COUNTED_TOGETHER)):
        chosen = {name: CHOSEN[name] for name, wanted in zip(COUNTED_TOGETHER, names, strict=True) if wanted}
        for sort in (one for one in SORTS if one != "relevance"):
            query = ListQuery(sort=sort, **chosen)
            following = list_context(env, query)["next_href"].partition("cursor=")[2]
            assert following
            second = query.change(cursor=following.partition("&")[0])
            found += [partial(list_context, env, query), partial(list_context, env, second)]
    return found


@pytest.mark.parametrize("names", [(), ("verdict",), ("publisher", "capability"), COUNTED_TOGETHER])
@pytest.mark.usefixtures("shop")
def test_a_list_is_read_by_one_statement_for_its_counts_and_one_for_its_rows(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> None:
    query = ListQuery(**{name: CHOSEN[name] for name in names})
    read = partial(list_context, env, query)
    # Tags, licences and agents of a short one with two filters are counted in its skills, which are read by two more.
    assert [SkillCount._meta.db_table in one for one in asked(read)] == [True, *[False] * (3 if len(names) > 1 else 1)]
    monkeypatch.setattr(filtered, "MOST_FOUND", 5)
    assert [SkillCount._meta.db_table in one for one in asked(read)] == [True, False]


@pytest.mark.usefixtures("shop")
def test_skills_that_are_ticked_cost_one_statement_and_none_where_all_are_on_the_page(env: WorkerEnv) -> None:
    plain = asked(partial(list_context, env, ListQuery()))
    for ticked, more in ((("skill-20",), 0), (("skill-0", "skill-1", "skill-20", "gone"), 1)):
        told = asked(partial(list_context, env, ListQuery(compare=ticked)))
        assert told[: len(plain)] == plain
        assert len(told) == len(plain) + more
        if connection.vendor == "sqlite":
            assert [(step, one) for one in told for step in reads_every_row(one)] == []


@pytest.mark.usefixtures("shop")
def test_the_names_of_skills_are_searched_for_the_best_hits_alone(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Where all that is found is scored, SQLite asks for no names.
    monkeypatch.setattr("marketplace.skills.search.MOST_SCORED", 3)

    def searches_names(sort: str) -> bool:
        statements = asked(partial(list_skills, env, SkillFilters(query="skill"), sort=sort))
        return any("name : (" in one or ("_found(" in one and ", true, " in one) for one in statements)

    assert [searches_names(sort) for sort in ("relevance", "newest", "name")] == [True, False, False]


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize("few", [0, 1000], ids=["walked in order", "sorted"])
def test_a_page_of_a_list_takes_few_statements_and_none_reads_every_skill(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(filtered, "_FEW", few)
    statements: set[str] = set()
    for read in pages(env):
        told = asked(read)
        assert 0 < len(told) <= MOST_STATEMENTS
        statements |= set(told)
    assert len(statements) > 50
    if connection.vendor == "sqlite":
        assert [(step, one) for one in statements for step in reads_every_row(one)] == []


@pytest.mark.usefixtures("shop")
def test_an_empty_list_finds_what_is_near_by_three_more_statements(env: WorkerEnv) -> None:
    filters = {"publisher": "acm", "tag": "pfd", "license": "mit-"}
    told = asked(partial(list_context, env, ListQuery(**filters)))
    plain = asked(partial(list_skills, env, SkillFilters(**filters), count=True, facets=FACETS))
    assert len(told) == len(plain) + 3 <= MOST_STATEMENTS
    assert len([one for one in told if " UNION SELECT" in one and "LIMIT 200" in one]) == 1
    if connection.vendor == "sqlite":
        assert [(step, one) for one in told for step in reads_every_row(one)] == []


@pytest.mark.usefixtures("shop")
def test_what_is_counted_of_tags_licences_and_agents_begins_with_the_filter_that_leaves_fewest(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filtered, "_FEW", 0)
    for number in range(30):
        tags = {"tags": "pdf office" if number < 3 else "pdf"}
        publish_example(
            env, name=f"made-{number}", skill_path=f"made/{number}", metadata=tags, compatibility="Codex CLI"
        )
    alone = {"agent": "codex", "license": "MIT", "tag": "office"}
    for size in range(1, 4):
        for names in combinations(alone, size):
            chosen = {name: alone[name] for name in names}
            told = asked(partial(list_context, env, ListQuery(**chosen, verdict="clear")))
            assert 0 < len(told) <= MOST_STATEMENTS, chosen
            if connection.vendor == "sqlite":
                assert [(step, one) for one in told for step in reads_every_row(one)] == []
            if "tag" in chosen and connection.vendor == "sqlite":
                # What is read without the tag, for other tags beside it, begins with another filter.
                counted = [one for one in told if "'office'" in one and ("LIMIT 1001" in one or "LIMIT 201" in one)]
                assert counted
                assert [one for one in counted if "(namespace=? AND visibility=?" in first_steps(one)] == []


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize("few", [0, 1000], ids=["walked in order", "sorted"])
def test_who_sees_more_reads_in_order_as_well_and_a_stranger_pays_nothing_for_what_is_private(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(filtered, "_FEW", few)
    query = ListQuery(sort="newest", verdict="clear")
    before = asked(partial(list_context, env, query))
    for number in range(26):
        publish_example(env, name=f"ours-{number}", skill_path=f"ours/{number}", audience=MEMBERS)
        publish_example(env, name=f"team-{number}", skill_path=f"team/{number}", audience="team:7")
    assert asked(partial(list_context, env, query)) == before
    with seen_as((MEMBERS, "team:7")):
        statements: set[str] = set()
        for read in pages(env):
            told = asked(read)
            # One more for what there is to see, and for each page one for those of members and one for those of teams.
            assert 0 < len(told) <= MOST_STATEMENTS + 7
            statements |= set(told)
        if connection.vendor == "sqlite":
            assert [(step, one) for one in statements for step in reads_every_row(one)] == []
            ordered = [one for one in statements if "ORDER BY" in one and "'members'" in one and "LIMIT 25" in one]
            assert ordered
            # Of keys alone; the skills of a page are sorted as they are read.
            inner = [one.partition(" IN (")[2].rpartition(") ORDER BY")[0] or one for one in ordered]
            assert few or [one for one in inner if "USE TEMP B-TREE" in first_steps(one)] == []
        page = list_context(env, ListQuery(sort="name"))
        # As many as are counted, which is not the kept count of what is public.
        assert (page["total"].number, page["total"].or_more) == (78, False)


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize("sort", [one for one in SORTS if one != "relevance"])
def test_the_pages_of_who_sees_more_have_each_skill_once_and_in_order(env: WorkerEnv, sort: str) -> None:
    for number in range(26):
        publish_example(env, name=f"ours-{number}", skill_path=f"ours/{number}", audience=MEMBERS)
        publish_example(env, name=f"team-{number}", skill_path=f"team/{number}", audience="team:7")
    # Without times, as other tools write them.
    write_entries(env, 3, start=900)
    column, descending = listing.SORTS[sort]
    rows = SkillEntry.objects.exclude(slug="").order_by(*(f"{'-' * descending}{one}" for one in (column, "pk")))
    with seen_as((MEMBERS, "team:7")):
        found, cursor = [], None
        while True:
            page = list_skills(env, sort=sort, limit=7, cursor=cursor)
            found += [one.slug for one in page.skills]
            if (cursor := page.next_cursor) is None:
                break
    assert found == list(rows.values_list("slug", flat=True))


def first_steps(statement: str) -> str:
    """Return the steps of SQLite's plan for a statement, in their order."""
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN QUERY PLAN " + statement.replace("%", "%%"), [])
        return "; ".join(row[-1] for row in cursor.fetchall())


@pytest.mark.usefixtures("shop")
@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL chooses its plans by the size of the tables")
@pytest.mark.parametrize("few", [0, 1000], ids=["common filter", "rare filter"])
def test_a_search_reads_the_words_or_the_filter_and_never_every_skill(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(filtered, "_FEW", few)
    monkeypatch.setattr(filtered, "MOST_FOUND", 3)
    monkeypatch.setattr("marketplace.skills.search.MOST_SCORED", 3)
    index = "marketplace_searchfts VIRTUAL TABLE"
    for query, sort in product(("skill", "skll", "nothing"), ("relevance", "name")):
        for filters in ({}, {"capability": "shell"}, {"publisher": "acme"}):
            told = asked(partial(list_context, env, ListQuery(q=query, sort=sort, **filters)))
            plans = [first_steps(statement) for statement in told if statement.startswith("SELECT")]
            # As few are scored, one more for what comes after them.
            assert 0 < len(told) <= MOST_STATEMENTS + 1 + 8 * (query != "skill")
            assert [plan for plan in plans if "(namespace=? AND visibility=?)" in plan] == []
            # The index is the outermost loop, and is not asked for one skill after the other.
            assert [plan for plan in plans if index in plan and not plan.startswith(f"SCAN {index}")] == []
            with_words = [plan for plan in plans if index in plan]
            # What begins no word is known before.
            assert bool(with_words) or (few and filters) or query == "nothing", (query, filters)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL chooses its plans by the size of the tables")
def test_a_skill_is_found_by_its_identity_through_an_index(env: WorkerEnv) -> None:
    publish_example(env)
    identity = SkillEntry.objects.get().identity
    assert skills_of_identity(env, identity).count() == 1
    assert not skills_of_identity(env, "").exists()
    [statement] = asked(lambda: list(skills_of_identity(env, identity)))
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN QUERY PLAN " + statement, [])
        assert "USING INDEX skill_identity (namespace=? AND identity=?)" in cursor.fetchall()[0][-1]
