"""The query string of the list: shareable, minimal, and tolerant of unknown values."""

from __future__ import annotations

import pytest
from django.http import QueryDict
from hypothesis import given
from hypothesis import strategies as st

from marketplace.pages.list_query import FACETS, VIEWS, ListQuery


def test_the_plain_list_has_an_empty_query() -> None:
    assert ListQuery.read({}).href() == "?"


def test_an_address_holds_only_what_differs_from_the_plain_list() -> None:
    query = ListQuery.read({"q": " pdf ", "view": "cards", "verdict": "", "utm_source": "x"})
    assert query.href() == "?q=pdf"


@given(
    st.builds(
        ListQuery,
        q=st.text(min_size=1, max_size=30).map(lambda text: text.replace("\0", "").strip()),
        verdict=st.sampled_from(["", "clear", "notes"]),
        publisher=st.sampled_from(["", "acme", "ä & ö=1"]),
        sort=st.sampled_from(["", "name", "newest"]),
        view=st.sampled_from(list(VIEWS)),
        cursor=st.sampled_from(["", "abc=="]),
        compare=st.sampled_from([(), ("pdf-tools", "a&b=c"), ("b", "a")]),
    )
)
def test_an_address_leads_back_to_the_same_list(query: ListQuery) -> None:
    given = QueryDict(query.href().removeprefix("?"))
    assert ListQuery.read(given, given.getlist("compare")) == query


def test_a_filter_starts_from_the_first_page_and_keeps_the_rest() -> None:
    query = ListQuery.read({"q": "pdf", "sort": "name", "view": "table", "cursor": "here"})
    assert query.href(verdict="clear") == "?q=pdf&verdict=clear&sort=name&view=table"


def test_changing_the_view_keeps_the_place_in_the_list() -> None:
    links = {link["label"]: link for link in ListQuery.read({"cursor": "here"}).view_links()}
    assert links["Table"]["href"] == "?view=table&cursor=here"
    assert links["Cards"]["active"]


def test_a_new_search_keeps_filters_order_and_view_but_not_the_place() -> None:
    query = ListQuery.read({"q": "old", "publisher": "acme", "sort": "name", "view": "table", "cursor": "x"})
    assert query.kept() == [("publisher", "acme"), ("sort", "name"), ("view", "table")]


def test_the_best_match_is_an_order_only_of_a_search() -> None:
    assert ListQuery.read({"sort": "relevance"}).order == "newest"
    assert ListQuery.read({"q": "pdf"}).order == "relevance"
    assert ListQuery.read({"q": "pdf", "sort": "newest"}).order == "newest"
    labels = ["Newest", "Updated", "Downloads", "Trending", "Name"]
    assert [link["label"] for link in ListQuery.read({}).sort_links()] == labels
    search = ListQuery.read({"q": "pdf", "sort": "relevance"})
    assert [link["label"] for link in search.sort_links()] == ["Best match", *labels]
    # Without it in the address, the next list is not asked for it when the words are gone.
    assert (search.sort_links()[0]["href"], search.kept()) == ("?q=pdf", [])


@pytest.mark.parametrize("given", [{"sort": "'; --"}, {"view": "<x>"}, {"sort": "", "view": ""}])
def test_words_that_no_control_writes_fall_back_to_the_plain_list(given: dict[str, str]) -> None:
    assert ListQuery.read(given) == ListQuery()


def test_a_nul_and_endless_text_never_reach_the_database() -> None:
    query = ListQuery.read({"q": "a\0b" * 500, "cursor": "c" * 9_000})
    assert "\0" not in query.q
    assert (len(query.q), len(query.cursor)) == (200, 1_000)


def test_removing_all_filters_keeps_the_search() -> None:
    query = ListQuery.read({"q": "pdf", **dict.fromkeys(FACETS, "x"), "sort": "name"})
    assert set(query.filters) == set(FACETS)
    assert query.unfiltered() == "?q=pdf&sort=name"
