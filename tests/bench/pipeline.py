"""Measure the pipeline: fetch, scan, decide and publish, as the consumer does it that is shipped.

Two shapes: many small skills of one repository, and many repositories of one skill. Repositories are local, so that
only our part of a fetch is measured. CPU time is that of the consumers with all their children.
"""

from __future__ import annotations

from statistics import median
from typing import Final

from tests.bench.rows import Row, at_least, at_most
from tests.bench.workers import bench_database, let_it_count, our_module, run_to_end, work_together

OURS: Final = our_module("tests.bench.pipeline_ours")
PROCESSES: Final = (1, 2, 4)
# Per shape: its name, how many repositories of how many skills, and the bars: skills a second, and CPU of a skill.
SHAPES: Final = (
    ("200 skills of one repository", 1, 200, 20.0, 80.0),
    ("60 repositories of one skill", 60, 1, 8.0, 200.0),
)


def measure_pipeline(database: str, rounds: int) -> list[Row]:
    """Return the rows of the pipeline on one database: the median of ``rounds`` for 1, 2 and 4 consumers."""
    rows: list[Row] = []
    for title, repositories, skills, least_rate, most_cpu in SHAPES:
        area = f"pipeline, {database}, {title}"
        rates: dict[int, float] = {}
        largest = 0.0
        for count in PROCESSES:
            measured = [_measure(database, repositories, skills, count) for _round in range(rounds)]
            rates[count] = median(rate for rate, _cpu, _memory in measured)
            word = "consumer" if count == 1 else "consumers"
            largest = max(largest, *(memory for _rate, _cpu, memory in measured))
            # The machine has two cores; what one consumer does alone is reported beside it.
            rate = (area, f"skills a second, {count} {word}", rates[count])
            rows.append(at_least(*rate, least_rate, "/s") if count == 2 else Row(*rate, "/s"))
            cpu = median(cpu for _rate, cpu, _memory in measured)
            rows.append(at_most(area, f"CPU of a skill, {count} {word}", cpu, most_cpu, "ms"))
        rows.append(Row(area, "largest process, children included", largest, "MB"))
        rows += [Row(area, f"throughput of {n} consumers beside 1", rates[n] / rates[1], "x") for n in PROCESSES[1:]]
    return rows


def _measure(database: str, repositories: int, skills: int, consumers: int) -> tuple[float, float, float]:
    """Return skills a second, milliseconds of CPU a skill, and the megabytes of the largest process."""
    with bench_database(database) as environment:
        environment["VSKILL_SOURCE_ROOTS"] = environment["VSKILL_DATA_DIR"]
        run_to_end([*OURS, "prepare", str(repositories), str(skills)], environment)
        let_it_count(environment["DATABASE_URL"])
        told = work_together([*OURS, "work"], environment, consumers)
    published = sum(one["published"] for one in told)
    assert published == repositories * skills, f"{published} of {repositories * skills} skills were published"
    seconds = max(one["seconds"] for one in told)
    cpu = sum(one["cpu"] for one in told)
    return published / seconds, cpu * 1000 / published, max(one["megabytes"] for one in told)
