"""Statements of ``prepared_cursor`` are kept by the server for the connection, and no others are."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
from django.db import DatabaseError, connection, connections, transaction

from vskill.db import prepared_cursor
from vskill.environments import WorkerEnv

ASKED = "SELECT %(number)s + 1, %(word)s || '!'"

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]
on_postgres = pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite keeps every statement")


def answer(env: WorkerEnv, number: int, word: str) -> Any:
    with prepared_cursor(env.database) as cursor:
        cursor.execute(ASKED, {"number": number, "word": word})
        return cursor.fetchone()


def kept(part: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM pg_prepared_statements WHERE position(%s IN statement) > 0", [part])
        return int(cursor.fetchone()[0])


def test_the_values_of_each_call_are_its_own(env: WorkerEnv) -> None:
    assert [answer(env, number, word) for number, word in ((1, "one"), (7, "it's; %s"))] == [
        (2, "one!"),
        (8, "it's; %s!"),
    ]


@on_postgres
def test_a_statement_is_prepared_once_for_a_connection(env: WorkerEnv) -> None:
    for number in range(8):
        answer(env, number, "again")
    assert kept("|| '!'") == 1


@on_postgres
def test_other_cursors_prepare_nothing_also_afterwards(env: WorkerEnv) -> None:
    answer(env, 1, "one")
    for _again in range(8):
        with connection.cursor() as cursor:
            cursor.execute("SELECT %s::int AS other", [1])
    assert kept("AS other") == 0


@on_postgres
def test_a_statement_that_failed_is_answered_when_it_is_asked_again(env: WorkerEnv) -> None:
    answer(env, 1, "one")
    with pytest.raises(DatabaseError), transaction.atomic(using=env.database):
        answer(env, 2**31 - 1, "too large for a sum of integers")
    assert answer(env, 2, "two") == (3, "two!")


@on_postgres
def test_the_limit_of_the_session_ends_such_a_statement(env: WorkerEnv) -> None:
    # PostgreSQL's wrapper has it.
    connection.limit_statements(0.05)  # type: ignore[attr-defined]
    with (
        pytest.raises(DatabaseError, match="statement timeout"),
        transaction.atomic(using=env.database),
        prepared_cursor(env.database) as cursor,
    ):
        cursor.execute("SELECT pg_sleep(%(seconds)s)", {"seconds": 60})


def on_another_connection(env: WorkerEnv, statement: str) -> None:
    def execute() -> None:
        with closing(connections[env.database]) as other, other.cursor() as cursor:
            cursor.execute(statement)

    with ThreadPoolExecutor(1) as thread:
        thread.submit(execute).result()


def read_all(env: WorkerEnv) -> list[Any]:
    with prepared_cursor(env.database) as cursor:
        cursor.execute("SELECT text FROM changed")
        return list(cursor.fetchall())


@on_postgres
@pytest.mark.django_db(transaction=True)
def test_a_statement_is_answered_after_a_column_got_another_type(env: WorkerEnv) -> None:
    on_another_connection(env, "CREATE TABLE changed AS SELECT 'one'::varchar(10) AS text")
    try:
        for length in (20, 30):
            assert read_all(env) == [("one",)]
            on_another_connection(env, f"ALTER TABLE changed ALTER COLUMN text TYPE varchar({length})")
        assert read_all(env) == [("one",)]
        # In a transaction, the one after it is answered.
        on_another_connection(env, "ALTER TABLE changed ALTER COLUMN text TYPE varchar(40)")
        with pytest.raises(DatabaseError, match="result type"), transaction.atomic(using=env.database):
            read_all(env)
        assert read_all(env) == [("one",)]
    finally:
        on_another_connection(env, "DROP TABLE changed")
