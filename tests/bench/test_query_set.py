"""The set of queries by which search is judged: complete, repeatable, and each with an answer that is there."""

from __future__ import annotations

from collections import Counter

from tests.bench.query_set import make, read_queries, read_skills
from tests.bench.search_ours import plain_bm25, rate


def test_two_hundred_queries_are_made_of_the_skills_by_the_same_seed() -> None:
    skills = read_skills()
    queries = read_queries()
    assert queries == make(skills)
    assert Counter(query.kind for query in queries).total() == 200
    assert len({(query.repository, query.name) for query in queries}) == 200


def test_answers_are_rated_by_their_rank() -> None:
    queries = read_queries()[:2]
    wanted = [(query.repository, query.name) for query in queries]
    answers = {queries[0].text: [wanted[0]], queries[1].text: [wanted[0], ("x", "y"), wanted[1]]}
    assert rate(queries, answers.__getitem__)["all"] == {"ndcg": (1 + 0.5) / 2, "mrr": (1 + 1 / 3) / 2}
    assert rate(queries, lambda _text: [])["all"] == {"ndcg": 0, "mrr": 0}
    assert rate(queries, plain_bm25(read_skills()))["all"]["mrr"] > 0
