"""Appeals of authors: taken once for each version, raised in the queue, answered by the decision."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient, Client

from submissions.models import HeldSubmission
from submissions.states import State
from submissions.store.queries import read_submission
from tests.submissions.factories import make_submission
from vskill.environments import WorkerEnv
from vskill.kv.threads import readers

pytestmark = pytest.mark.django_db(transaction=True)

WORDS = "The finding is about a deny-list.\nIt names no file."


async def send(submission_id: str, text: str = WORDS) -> Any:
    return await AsyncClient().post(f"/submissions/{submission_id}/appeal", {"text": text})


async def held(env: WorkerEnv, state: State = State.ON_HOLD, **fields: Any) -> str:
    made = await readers.run(make_submission, env, state, **{"contentHash": "c" * 64, **fields})
    return str(made.id)


@pytest.mark.parametrize("state", [State.ON_HOLD, State.REJECTED])
async def test_an_appeal_is_kept_shown_and_raises_the_submission(env: WorkerEnv, state: State) -> None:
    one = await held(env, state)
    assert (await send(one)).status_code == 302
    row = await HeldSubmission.objects.aget(key=f"sub:{one}")
    assert row.review_rank is not None
    assert row.review_rank >= 10_000
    page = (await AsyncClient().get(f"/submissions/{one}")).content.decode()
    assert "It names no file." in page
    assert "Send the appeal" not in page
    answer = (await AsyncClient().get(f"/api/v1/submissions/{one}")).json()
    assert (answer["appeal"]["text"], answer["appeal"]["answer"]) == (WORDS, None)


async def test_one_appeal_is_taken_for_each_version(env: WorkerEnv) -> None:
    one = await held(env)
    await send(one)
    again = await send(one, "Another text of the author.")
    assert again.status_code == 422
    assert (await AsyncClient().get(f"/api/v1/submissions/{one}")).json()["appeal"]["text"] == WORDS


@pytest.mark.parametrize("text", ["", "short", "x" * 2001, "looks harmless \u202e to you", "a zero\u200bwidth space"])
async def test_a_text_that_is_not_to_be_kept_is_refused_and_said(env: WorkerEnv, text: str) -> None:
    one = await held(env)
    answer = await send(one, text)
    assert answer.status_code == 422
    assert 'role="alert"' in answer.content.decode()
    assert (await HeldSubmission.objects.aget(key=f"sub:{one}")).version == 1


@pytest.mark.parametrize("state", [State.PUBLISHED, State.RECEIVED, State.TIER1_FAILED, State.BLOCKED])
async def test_what_is_neither_held_nor_refused_is_not_appealed(env: WorkerEnv, state: State) -> None:
    one = await held(env, state)
    assert (await send(one)).status_code == 422
    assert "Send the appeal" not in (await AsyncClient().get(f"/submissions/{one}")).content.decode()


async def test_markup_of_an_appeal_is_text(env: WorkerEnv) -> None:
    one = await held(env)
    await send(one, "<script>alert(1)</script> is quoted")
    assert "<script>alert" not in (await AsyncClient().get(f"/submissions/{one}")).content.decode()


async def test_an_appeal_to_nothing_is_not_found(env: WorkerEnv) -> None:
    assert (await send("sub_nothing")).status_code == 404


@pytest.mark.parametrize(
    ("before", "decision", "after", "answer"),
    [
        (State.ON_HOLD, "approve", State.AUTO_APPROVED, "overturned"),
        (State.ON_HOLD, "reject", State.REJECTED, "upheld"),
        (State.REJECTED, "approve", State.AUTO_APPROVED, "overturned"),
        (State.REJECTED, "reject", State.REJECTED, "upheld"),
        (State.REJECTED, "block", State.BLOCKED, "upheld"),
    ],
)
def test_the_decision_answers_the_appeal_in_the_reviewers_words(
    client: Client, env: WorkerEnv, before: State, decision: str, after: State, answer: str
) -> None:
    appeal = {"text": WORDS, "at": "", "contentHash": "c" * 64}
    made = make_submission(env, before, contentHash="c" * 64, appeal=appeal)
    client.force_login(User.objects.create_superuser("reviewer"))
    row = HeldSubmission.objects.get(key=f"sub:{made.id}")
    address = f"/admin/submissions/heldsubmission/{row.pk}/change/"
    assert "It names no file." in client.get(address).content.decode()
    client.post(address, {"decision": decision, "reason": "read it again", "seen": made.version})
    decided = read_submission(env, made.id)
    assert decided.state is after
    assert (decided.value["appeal"]["answer"], decided.value["appeal"]["words"]) == (answer, "read it again")
    assert HeldSubmission.objects.get(pk=row.pk).review_rank is None
    assert "read it again" in client.get(f"/submissions/{made.id}").content.decode()
