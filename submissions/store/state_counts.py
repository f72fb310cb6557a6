"""Count the submissions in each state, each to a bound, so that it costs the same in any registry."""

from __future__ import annotations

from functools import cache
from typing import Final

from django.db import connections

from marketplace.catalog import HowMany
from submissions.models import SubmissionEntry
from submissions.states import State
from submissions.store.shown import hides_any, shown_submissions
from vskill.db import prepared_cursor
from vskill.environments import WorkerEnv
from vskill.kv.statements import statements

MOST_COUNTED: Final = 1_000
# Whether a submission is shown takes several look-ups, so where a state has more than that, few are looked at.
MOST_SHOWN_COUNTED: Final = 100


def count_states(env: WorkerEnv) -> dict[State, HowMany]:
    """Return how many submissions are in each state now, counted to ``MOST_COUNTED`` by one statement.

    Those that whoever asks now may not know of are not counted. Where there may be any, it takes a statement more for
    each state that has submissions, and of more than ``MOST_COUNTED``, ``MOST_SHOWN_COUNTED`` are counted.
    """
    numbers, bounds = _all(env), dict.fromkeys(State, MOST_COUNTED)
    if hides_any(env):
        rows = SubmissionEntry.objects.using(env.database).live().filter(namespace=env.name)
        shown = shown_submissions(env, rows)
        for state in (one for one, number in numbers.items() if number):
            bounds[state] = MOST_SHOWN_COUNTED if numbers[state] > MOST_COUNTED else MOST_COUNTED
            numbers[state] = shown.filter(state=state)[: bounds[state] + 1].count()
    return {state: HowMany(min(numbers[state], most), numbers[state] > most) for state, most in bounds.items()}


def _all(env: WorkerEnv) -> dict[State, int]:
    parameters = [one for state in State for one in (env.name, str(state), MOST_COUNTED + 1)]
    with prepared_cursor(env.database) as cursor:
        cursor.execute(_statement(connections[env.database].vendor), parameters)
        found = cursor.fetchone()
    return {state: int(number) for state, number in zip(State, found, strict=True)}


@cache
def _statement(vendor: str) -> str:
    """Return the statement: a row with one number for each state, each read from the index over states alone."""
    live = statements(SubmissionEntry, vendor).live
    rows = f'SELECT 1 FROM "{SubmissionEntry._meta.db_table}" WHERE namespace = %s AND state = %s AND {live} LIMIT %s'  # noqa: S608 - names of our own models
    count = f"(SELECT COUNT(*) FROM ({rows}) AS found)"  # noqa: S608 - as above
    return f"SELECT {', '.join([count] * len(State))}"
