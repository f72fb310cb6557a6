"""Measure every page of a large registry beside a page that does nothing, on one database."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.bench.rows import Row, at_most
from tests.bench.visitors import measure_visitors
from tests.bench.workers import bench_database, last_line, let_it_count, our_module, run_to_end

LIST, SEARCH_PAGE, SEARCH_API, ONE, ADMIN = "list", "search page", "search API", "one thing", "admin"
# How often the time of the trivial page an address may take.
BARS: Final[Mapping[str, float]] = {LIST: 5, SEARCH_PAGE: 8, SEARCH_API: 5, ONE: 5, ADMIN: 3}
OURS: Final = our_module("tests.bench.pages_ours")
# A 95th percentile of fewer is the slowest alone.
_REQUESTS: Final = 20
# Of the 200 queries of the set, each asked of the page and of the API.
_ROUNDS_OF_SET: Final = 5
# How often the time of the first page one far into the same list may take.
_DEEP: Final = 1.5
# How many skills a small registry has, and what publishing one more may cost in a large one, against this.
_FEW: Final = 1_000
_PUBLISHING: Final = 1.2
_PUBLISHED: Final = 100
# Seconds for which visitors read it at once.
_VISITED: Final = 60.0


def measure_pages(database: str, skills: int) -> list[Row]:
    """Return the 95th percentile of each address, in times that of the trivial page of the same run."""
    area = f"pages, {database}, {skills:,} skills"
    with bench_database(database) as environment:
        run_to_end([*OURS, "prepare", str(_FEW)], environment)
        few = _publish(environment)
        run_to_end([*OURS, "prepare", str(skills - _FEW)], environment)
        many = _publish(environment)
        let_it_count(environment["DATABASE_URL"])
        told = last_line(run_to_end([*OURS, "measure", str(_REQUESTS)], environment))
        visited = measure_visitors(area, told["public"], environment, _VISITED)
        run_to_end([*OURS, "public"], environment)
        let_it_count(environment["DATABASE_URL"])
        searched = last_line(run_to_end([*OURS, "measure_set", str(_ROUNDS_OF_SET)], environment))
    rows = [Row(area, "the trivial page, p95", told["trivial"], "ms")]
    rows.append(Row(area, "the trivial page of the admin, p95", told["trivial_admin"], "ms"))
    rows.append(Row(area, f"publishing one more skill, beside {_FEW:,}", few, "ms"))
    rows.append(at_most(area, f"publishing one more skill, against beside {_FEW:,}", many / few, _PUBLISHING))
    for first, ratio in told["deep"].items():
        rows.append(at_most(area, f"after nine tenths of {first}, against its first page", ratio, _DEEP))
    for page in told["pages"]:
        title = f"{page['kind']}: {page['path']}"
        rows.append(at_most(area, title, page["ratio"], BARS[page["kind"]]))
        rows.append(Row(area, f"{title}, median", page["of_medians"], "x"))
    for kind, of_set in searched.items():
        rows.append(at_most(area, f"{kind}: all queries of the set", of_set["every"], BARS[kind]))
        rows.append(at_most(area, f"{kind}: the slowest of the set, {of_set['query']}", of_set["slowest"], BARS[kind]))
    return rows + visited


def _publish(environment: dict[str, str]) -> float:
    """Return the milliseconds that the publication of one more skill takes, in the median."""
    let_it_count(environment["DATABASE_URL"])
    median: float = last_line(run_to_end([*OURS, "publish", str(_PUBLISHED)], environment))["publish"]
    return median
