"""Lists: filters, facets with true counts, and cursors that stay exact."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from marketplace.catalog import SORTS, SkillFilters, facet_counts, list_skills, quarantine_skill
from marketplace.errors import InvalidListing
from marketplace.models import SkillEntry
from marketplace.models.derived import DownloadDay
from marketplace.skills.downloads import count_download_sync, recount_recent
from tests.marketplace.factories import publish_example, write_entries
from vskill.environments import WorkerEnv
from vskill.kv.cursors import decode_cursor, encode_cursor

pytestmark = pytest.mark.django_db

FACETS = ("verdict", "publisher", "license", "tag", "capability")


def slugs(env: WorkerEnv, filters: SkillFilters = SkillFilters(), **asked: str) -> list[str]:  # noqa: B008 - frozen
    return [skill.slug for skill in list_skills(env, filters, **asked).skills]  # type: ignore[arg-type]  # sort alone


def walk(env: WorkerEnv, filters: SkillFilters, sort: str, limit: int) -> list[str]:
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = list_skills(env, filters, sort=sort, limit=limit, cursor=cursor)
        seen += [skill.slug for skill in page.skills]
        cursor = page.next_cursor
        if cursor is None:
            return seen


@pytest.fixture
def shop(env: WorkerEnv) -> None:
    """Publish four skills that differ in every facet."""
    publish_example(env, name="alpha", license="MIT", metadata={"tags": "pdf office"}, capabilities=("shell",))
    publish_example(env, name="beta", license="MIT", metadata={"tags": "pdf"}, capabilities=("network", "shell"))
    publish_example(env, name="gamma", license="Apache-2.0", verdict="notes", capabilities=())
    publish_example(env, name="delta", license="", repo_url="https://github.com/mallory/skills", capabilities=())


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        (SkillFilters(), ["alpha", "beta", "delta", "gamma"]),
        (SkillFilters(publisher="mallory"), ["delta"]),
        (SkillFilters(verdict="notes"), ["gamma"]),
        (SkillFilters(license="MIT"), ["alpha", "beta"]),
        (SkillFilters(tag="pdf"), ["alpha", "beta"]),
        (SkillFilters(tag="pdf", capability="network"), ["beta"]),
        (SkillFilters(prefix="al"), ["alpha"]),
        (SkillFilters(prefix="%"), []),
        (SkillFilters(query="says", license="Apache-2.0"), ["gamma"]),
        (SkillFilters(verdict="' OR 1=1"), []),
    ],
)
def test_filters_narrow(env: WorkerEnv, filters: SkillFilters, wanted: list[str]) -> None:
    assert slugs(env, filters, sort="name") == wanted


@pytest.mark.usefixtures("shop")
def test_facets_count_what_choosing_them_would_give(env: WorkerEnv) -> None:
    for chosen in (SkillFilters(), SkillFilters(license="MIT"), SkillFilters(query="says"), SkillFilters(tag="pdf")):
        counts = facet_counts(env, chosen, FACETS)
        assert all(counts[name] for name in FACETS)
        for name, values in counts.items():
            for value, count, _or_more in values:
                narrowed = SkillFilters(**{**vars(chosen), name: value})
                assert list_skills(env, narrowed, count=True).total == (count, False), (chosen, name, value)


@pytest.mark.parametrize("name", ["query", "publisher", "verdict", "license", "tag", "capability", "agent", "prefix"])
@pytest.mark.parametrize("value", ["\0", "a\0b", "\ud800"])
@pytest.mark.parametrize("words", ["", "hello"])
def test_a_value_that_no_database_can_hold_has_an_empty_list(env: WorkerEnv, name: str, value: str, words: str) -> None:
    publish_example(env)
    filters = SkillFilters(**{"query": words, name: value})

    assert list_skills(env, filters, count=True).total == (0, False)
    assert sum(len(facet_counts(env, filters)[other]) for other in ("verdict", "publisher") if other != name) == 0


@pytest.mark.usefixtures("shop")
def test_facets_are_sorted_by_their_counts(env: WorkerEnv) -> None:
    counts = {
        name: [(one.value, one.number) for one in values]
        for name, values in facet_counts(env, SkillFilters(), FACETS).items()
    }
    assert counts["license"] == [("MIT", 2), ("Apache-2.0", 1)]
    assert counts["publisher"] == [("acme", 3), ("mallory", 1)]
    assert counts["capability"] == [("shell", 2), ("sends", 1)]
    assert counts["tag"] == [("pdf", 2), ("office", 1)]


@pytest.mark.parametrize("sort", [sort for sort in SORTS if sort != "relevance"])
@pytest.mark.parametrize("limit", [1, 7, 200])
def test_a_walk_by_cursor_meets_every_skill_once(env: WorkerEnv, sort: str, limit: int) -> None:
    write_entries(env, 17)
    for number in range(6):
        # The entries above have no times, like entries that another tool wrote; these have.
        publish_example(env, name=f"skill-{17 + number:05}", skill_path=str(number))
    for number in range(0, 23, 3):
        row = SkillEntry.objects.get(slug=f"skill-{number:05}")
        for _time in range(number % 4):
            count_download_sync(env, row.pk, "1.0.0")

    seen = walk(env, SkillFilters(), sort, limit)

    assert sorted(seen) == [f"skill-{number:05}" for number in range(23)]


def test_a_walk_by_relevance_meets_every_hit_once(env: WorkerEnv) -> None:
    for number in range(7):
        publish_example(env, name=f"pdf-{number}", description="pdf " * (number % 3))
    assert len(set(walk(env, SkillFilters(query="pdf"), "relevance", 2))) == 7


def test_what_is_published_meanwhile_neither_repeats_nor_hides_another(env: WorkerEnv) -> None:
    for number in range(4):
        publish_example(env, name=f"early-{number}")
    first = list_skills(env, sort="newest", limit=2)
    publish_example(env, name="late")
    quarantine_skill(env, "early-3", actor="test", reason="bad")
    rest = list_skills(env, sort="newest", limit=5, cursor=first.next_cursor)

    assert [skill.slug for skill in (*first.skills, *rest.skills)] == ["early-3", "early-2", "early-1", "early-0"]


def test_a_cursor_of_another_list_is_refused(env: WorkerEnv) -> None:
    write_entries(env, 3)
    cursor = list_skills(env, sort="name", limit=1).next_cursor
    assert cursor is not None
    for other in ({"sort": "newest"}, {"filters": SkillFilters(verdict="clear"), "sort": "name"}):
        with pytest.raises(InvalidListing):
            list_skills(env, cursor=cursor, **other)
    with pytest.raises(InvalidListing):
        list_skills(env, sort="name", cursor=cursor[:-4])


def test_a_cursor_that_was_not_signed_here_is_refused_with_advice(env: WorkerEnv) -> None:
    write_entries(env, 3)
    # Of the list by name in the environment "default", as earlier releases wrote it and as anybody could.
    cursor = "WyI4ZmNkYWNiYTUxZGMiLCJza2lsbC0wMDAwMCIsMTAwMDAwMDAwMF0"
    with pytest.raises(InvalidListing, match="Start again without it"):
        list_skills(env, sort="name", cursor=cursor)


@pytest.mark.parametrize("sort", ["newest", "name", "downloads"])
@pytest.mark.parametrize(
    "value",
    [
        *(None, "x", "2020-01-01", "\ud800", 1, 2**70, -1.5, [], {}, ["a"], {"a": 1}, True, ""),
        # Outside the calendar once they are converted to UTC.
        *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("number", [1, 2**70, "1", None], ids=repr)
def test_a_forged_cursor_is_refused_or_leads_somewhere_harmless(
    env: WorkerEnv, sort: str, value: object, number: object
) -> None:
    write_entries(env, 2)
    cursor = list_skills(env, sort=sort, limit=1).next_cursor
    assert cursor is not None
    # The signature keeps forgers out, and what a cursor holds is checked all the same.
    forged = encode_cursor(decode_cursor(cursor)[0], value, number)
    try:
        page = list_skills(env, sort=sort, cursor=forged)
    except InvalidListing:
        return
    assert len(page.skills) <= 2


@pytest.mark.parametrize("sort", ["nonsense", "relevance", "slug; DROP TABLE"])
def test_an_order_that_does_not_exist_is_refused(env: WorkerEnv, sort: str) -> None:
    with pytest.raises(InvalidListing):
        list_skills(env, sort=sort)


def test_downloads_are_counted_by_day_and_in_all(env: WorkerEnv) -> None:
    publish_example(env)
    row = SkillEntry.objects.get()
    for _time in range(3):
        count_download_sync(env, row.pk, "0.0.1")

    assert DownloadDay.objects.get().count == 3
    row.refresh_from_db()
    assert row.downloads == 3
    publish_example(env, body="Changed.")
    row.refresh_from_db()
    assert row.downloads == 3


def test_the_most_downloaded_come_first_and_the_recent_ones_trend(env: WorkerEnv) -> None:
    for name in ("old-star", "new-star", "nobody"):
        publish_example(env, name=name)
    for name, times in (("old-star", 3), ("new-star", 2)):
        for _time in range(times):
            count_download_sync(env, SkillEntry.objects.get(slug=name).pk, "0.0.1")
    DownloadDay.objects.filter(skill__slug="old-star").update(day="2020-01-01")
    recount_recent(env)

    assert slugs(env, sort="downloads") == ["old-star", "new-star", "nobody"]
    assert slugs(env, sort="trending")[0] == "new-star"


def plans(env: WorkerEnv, sort: str, cursor: str | None) -> list[str]:
    """Return how the database executes each query of one page."""
    with CaptureQueriesContext(connection) as asked:
        list_skills(env, sort=sort, limit=5, cursor=cursor)
    prefix = "EXPLAIN QUERY PLAN " if connection.vendor == "sqlite" else "EXPLAIN "
    told = []
    for query in asked.captured_queries:
        with connection.cursor() as at:
            # Django's text of a query on SQLite has its values, so it has no parameters.
            at.execute(prefix + query["sql"].replace("%", "%%"), [])
            told.append("\n".join(str(row[-1]) for row in at.fetchall()))
    return told


@pytest.mark.parametrize("sort", [sort for sort in SORTS if sort != "relevance"])
def test_every_page_follows_an_index_from_where_it_starts(env: WorkerEnv, sort: str) -> None:
    write_entries(env, 2000)
    moments = F("id") % 7
    SkillEntry.objects.update(downloads=moments, recent_downloads=moments)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    first = list_skills(env, sort=sort, limit=1000)
    of_pages = [plans(env, sort, None), plans(env, sort, first.next_cursor)]

    assert all(of_pages)
    for plan in [plan for queries in of_pages for plan in queries]:
        assert "USING" in plan.upper(), plan
        assert not re.search("SCAN [a-z_]+$|TEMP B-TREE|Seq Scan|-> +Sort .*rows=(?!1 )", plan, re.MULTILINE), plan
