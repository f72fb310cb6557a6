"""Lists that never end, asked for by many: everything else answers, and nothing of them is left once they hang up."""

from __future__ import annotations

import contextlib
import json
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from tests.end_to_end.processes import QUICK_QUEUE, Instance, database, free_port, instance
from tests.end_to_end.web import answer, body, raw_answer, until_healthy
from tests.git_factory import make_repository, skill_md
from tests.marketplace.pages.endless_search import WORD, make_endless
from tests.process_groups import Started

VISITORS: Final = 12
SLOW: Final = "slow"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Instance]:
    """Yield an installation of two environments; in the second, which has its own database, no search ever ends."""
    port, data_dir = str(free_port()), tmp_path / "data"
    other = tmp_path / "other"
    other.mkdir()
    policy = {"source_file_roots": [str(data_dir)]}
    environments = {
        "default": {"hosts": ["127.0.0.1"], "public_url": f"http://127.0.0.1:{port}", "policy": policy},
        SLOW: {"hosts": [f"{SLOW}.test"], "public_url": "http://slow.test", "policy": policy, "database": SLOW},
    }
    with database(other) as url:
        variables = {
            **QUICK_QUEUE,
            "DEMO": "0",
            "HOST": "127.0.0.1",
            "PORT": port,
            "VSKILL_DATABASES": json.dumps({SLOW: url}),
            "VSKILL_ENVIRONMENTS": json.dumps(environments),
            # So long that nothing in this test ends by its deadline.
            "VSKILL_VISITOR_SECONDS": "1h",
            "VSKILL_VISITOR_WAIT": "1h",
        }
        with instance(data_dir, **variables) as made:
            made.manage("migrate", "-v", "0", "--database", SLOW)
            repository = make_repository(data_dir / "first.git", {"SKILL.md": skill_md("first-skill")})
            for environment in environments:
                made.manage("submit", "--environment", environment, repository.as_uri())
            made.manage("consume", "--drain")
            execute(url, make_endless(SLOW, "sqlite" if url.startswith("sqlite") else "postgresql"))
            yield made


def execute(url: str, statements: list[str]) -> list[Any]:
    """Execute statements in the database at ``url``, and return the rows of the last."""
    opened: Any = (
        contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None))
        if url.startswith("sqlite")
        else psycopg.connect(url, autocommit=True)
    )
    with opened as connection:
        rows: list[Any] = []
        for statement in statements:
            done = connection.execute(statement)
            rows = done.fetchall() if done.description else []
        return rows


@contextmanager
def asking(installation: Instance, path: str) -> Iterator[None]:
    """Ask for a page of the slow environment and never read the answer; hang up at the end."""
    with socket.create_connection(("127.0.0.1", int(installation.variables["PORT"]))) as visitor:
        visitor.sendall(f"GET {path} HTTP/1.1\r\nHost: {SLOW}.test\r\n\r\n".encode())
        yield


def web(installation: Instance) -> dict[str, Any]:
    """Return what /healthz says of the web process."""
    part: dict[str, Any] = body(installation, "/healthz")["parts"]["web"]
    return part


def reading(installation: Instance) -> int:
    return int(web(installation)["reading"])


def everything_else_answers(installation: Instance, up: Started) -> None:
    assert answer(installation, "/healthz")[0] == 200
    assert answer(installation, "/skills/first-skill")[0] == 200
    assert raw_answer(installation, "/api/v1/download?slug=first-skill")[0] == 200
    repository = make_repository(installation.data_dir / "second.git", {"SKILL.md": skill_md("second-skill")})
    status, content = raw_answer(installation, "/api/v1/submissions", {"repoUrl": repository.as_uri()})
    assert status == 202, content
    number = json.loads(content)["id"]
    up.until(lambda: body(installation, f"/api/v1/submissions/{number}")["state"] == "PUBLISHED")
    assert answer(installation, "/skills/second-skill")[0] == 200


def test_slow_lists_hold_up_nothing_else_and_are_gone_when_their_visitors_are(installation: Instance) -> None:
    with installation.started("up") as up:
        until_healthy(installation, up)
        with ExitStack() as visitors:
            for number in range(VISITORS):
                path = f"/skills?q={WORD}" if number % 2 else f"/api/v1/search?q={WORD}"
                visitors.enter_context(asking(installation, path))
            # The question about health is not one of them: it has been answered.
            up.until(lambda: reading(installation) >= VISITORS)
            everything_else_answers(installation, up)
            assert reading(installation) >= VISITORS

        # They would run for an hour if hanging up did not end them.
        up.until(lambda: reading(installation) == 0)
        assert answer(installation, "/skills")[0] == 200
        assert web(installation)["endedEarly"] == {"visitor_left": VISITORS}
        assert running(installation) == 0
        assert "Traceback" not in up.said()


def running(installation: Instance) -> int:
    """Return how many statements the PostgreSQL server still executes; SQLite executes them in the web process."""
    url = json.loads(installation.variables["VSKILL_DATABASES"])[SLOW]
    if url.startswith("sqlite"):
        return 0
    # The scheduler looks through the documents with a cursor, and is nobody's visitor.
    visitors = "query LIKE '%searchdocument%' AND query NOT LIKE 'DECLARE%'"
    active = f"pid <> pg_backend_pid() AND state = 'active' AND {visitors}"
    ((count,),) = execute(url, [f"SELECT count(*) FROM pg_stat_activity WHERE {active}"])  # noqa: S608 - our own
    return int(count)
