"""What a publication costs does not grow with what is published already."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from marketplace.skills.publishers import skill_identity
from marketplace.skills.withdrawal import why_withdrawn
from tests.marketplace.factories import publish_example
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL chooses its plans by the size of the tables")
def test_no_statement_of_a_publication_reads_all_rows_of_a_table_or_of_an_environment(env: WorkerEnv) -> None:
    publish_example(env, name="there-before")
    statements: dict[str, Any] = {}

    def keep(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if not many and sql.startswith(("SELECT", "UPDATE", "DELETE", "INSERT")):
            statements[sql] = params
        return execute(sql, params, many, context)

    identity = skill_identity("https://github.com/acme/skills", "skills/pdf-tools")
    with connection.execute_wrapper(keep):
        assert why_withdrawn(env, identity, "9.9.9") == ""
        publish_example(env, name="pdf-tools", metadata={"tags": "pdf office"})
        publish_example(env, name="pdf-tools", metadata={"version": "2.0.0"}, description="Another one")

    plans: list[tuple[str, str]] = []
    with connection.cursor() as cursor:
        for sql, params in statements.items():
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}", params)
            plans += [(row[3], sql) for row in cursor.fetchall()]
    assert len(plans) > 20
    searched = [(step, sql) for step, sql in plans if step.startswith(("SEARCH", "SCAN marketplace", "SCAN kv"))]
    assert len(searched) > 10
    assert [(step, sql) for step, sql in searched if step.startswith("SCAN") or step.endswith("(namespace=?)")] == []
