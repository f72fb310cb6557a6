"""Pages by a keyset: nothing is shown twice or left out, whatever is written meanwhile, and no forged cursor counts."""

from __future__ import annotations

from datetime import timedelta

import pytest

from submissions.models import SubmissionEntry
from submissions.states import State
from tests.submissions.factories import make_submission, make_submissions
from vskill.environments import WorkerEnv
from vskill.kv.cursors import encode_cursor
from vskill.kv.errors import InvalidCursor
from vskill.kv.keyset import binding_of, bound_position, keyset_page

pytestmark = pytest.mark.django_db

ORDER = ("-submitted_at", "-pk")


def page(env: WorkerEnv, cursor: str = "", limit: int = 2, binding: str = "list") -> tuple[list[str], str | None]:
    rows = SubmissionEntry.objects.using(env.database).filter(namespace=env.name)
    found, following = keyset_page(rows, ORDER, binding=binding, cursor=cursor, limit=limit)
    return [one.submission_id for one in found], following


def test_equal_values_are_told_apart_and_the_last_page_says_so(env: WorkerEnv) -> None:
    old = make_submission(env, age=timedelta(days=1)).id
    equal = make_submissions(env, 4)
    newest_first = [*reversed(equal), old]
    first, cursor = page(env)
    assert first == newest_first[:2]
    # One before the cursor and one behind it.
    make_submission(env)
    late = make_submission(env, State.ON_HOLD, age=timedelta(hours=1)).id
    rest: list[str] = []
    while cursor:
        found, cursor = page(env, cursor)
        rest += found
    assert rest == [*newest_first[2:4], late, old]
    assert page(env, limit=7)[1] is None
    assert page(env, limit=6)[1] is not None


@pytest.mark.parametrize(
    "position",
    [
        [],
        ["2026-01-01T00:00:00+00:00"],
        ["2026-01-01T00:00:00+00:00", 1, 1],
        ["2026-01-01T00:00:00", 1],
        ["0001-01-01T00:00:00+23:59", 1],
        [1, 1],
        [None, None],
        ["2026-01-01T00:00:00+00:00", 2**63],
        ["2026-01-01T00:00:00+00:00", True],
        ["2026-01-01T00:00:00+00:00", "1"],
        [[], {}],
    ],
)
def test_a_cursor_with_another_position_is_refused(env: WorkerEnv, position: list[object]) -> None:
    with pytest.raises(InvalidCursor, match="belongs to another list"):
        page(env, encode_cursor("list", *position))


def test_a_cursor_of_another_list_or_of_nobody_is_refused(env: WorkerEnv) -> None:
    make_submissions(env, 3)
    cursor = page(env)[1] or ""
    assert bound_position("list", cursor)[1:] != []
    for forged in (cursor[:-1], f"x{cursor[1:]}", "x", "=", "ä", "\0", cursor.upper()):
        with pytest.raises(InvalidCursor):
            page(env, forged)
    with pytest.raises(InvalidCursor):
        page(env, cursor, binding="another")
    assert binding_of("a", "b") != binding_of("ab", "") != binding_of("a", "c")
