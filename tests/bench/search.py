"""Measure how well search answers: 200 queries about public skills, on one database, beside plain BM25."""

from __future__ import annotations

from typing import Final

from tests.bench.rows import Row, at_least
from tests.bench.workers import bench_database, last_line, our_module, run_to_end

OURS: Final = our_module("tests.bench.search_ours")
# What the index before answered, by the same queries over the same skills, and by how much it has to be better.
BEFORE: Final = {"ndcg": 0.7006, "mrr": 0.6975}
_BETTER: Final = 0.1


def measure_search(database: str) -> list[Row]:
    """Return nDCG@10 and the mean reciprocal rank of all queries and of each kind, ours and those of plain BM25."""
    area = f"search, {database}"
    with bench_database(database) as environment:
        told = last_line(run_to_end([*OURS], environment))
    ours, plain = told["ours"], told["plain"]
    found = ours["all"]["ndcg"]
    rows = [
        at_least(area, "nDCG@10 of all queries, against the index before", found, BEFORE["ndcg"] + _BETTER, ""),
        at_least(area, "nDCG@10 of all queries, against plain BM25", found, plain["all"]["ndcg"], ""),
        Row(area, "mean reciprocal rank of all queries", ours["all"]["mrr"], ""),
        Row(area, "  of plain BM25", plain["all"]["mrr"], ""),
        Row(area, "  of the index before", BEFORE["mrr"], ""),
    ]
    for kind in sorted(ours.keys() - {"all"}):
        rows.append(Row(area, f"nDCG@10: {kind}", ours[kind]["ndcg"], ""))
        rows.append(Row(area, "  of plain BM25", plain[kind]["ndcg"], ""))
    return rows
