"""The results of the reliability tests, and a table of them: ``python -m tests.reliability.results``.

Each test that passes adds a line to build/reliability.jsonl. The command writes the newest result of each case and
database into docs/reliability.md, between two marks.
"""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
FILE: Final = ROOT / "build" / "reliability.jsonl"
PAGE: Final = ROOT / "docs" / "reliability.md"
BEGIN: Final = "<!-- results: written by python -m tests.reliability.results -->"
END: Final = "<!-- end of results -->"
DATABASES: Final = ("SQLite", "PostgreSQL")


@dataclass(frozen=True)
class Result:
    """The outcome of one case on one database."""

    case: str
    database: str
    outcome: str


def add(result: Result) -> None:
    """Append one result; several processes may do so concurrently."""
    FILE.parent.mkdir(parents=True, exist_ok=True)
    with FILE.open("a") as file:
        file.write(json.dumps(asdict(result)) + "\n")


def table(results: list[Result]) -> str:
    """Return a Markdown table of the newest result of each case."""
    newest = {(result.case, result.database): result.outcome for result in results}
    cases = dict.fromkeys(result.case for result in results)
    lines = [f"| case | {' | '.join(DATABASES)} |", "|---|---|---|"]
    for case in sorted(cases):
        cells = [newest.get((case, database), "-") for database in DATABASES]
        lines.append(f"| {case} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Write the table into the page."""
    results = [Result(**json.loads(line)) for line in FILE.read_text().splitlines()]
    before, rest = PAGE.read_text().split(BEGIN)
    _old, after = rest.split(END)
    made = f"Python {platform.python_version()}, {platform.system()}"
    PAGE.write_text(f"{before}{BEGIN}\n\n{table(results)}\n\n({made})\n\n{END}{after}")


if __name__ == "__main__":
    main()
