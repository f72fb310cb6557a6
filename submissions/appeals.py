"""Appeals: the author of what was held or refused asks once for another look, in words that the reviewer reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from submissions.review_rank import has_open_appeal
from submissions.states import State
from submissions.store.queries import read_submission
from submissions.store.records import Submission
from submissions.store.transitions import touch
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.hidden_characters import first_hidden
from vskill.kv.clock import database_now, isoformat

LEAST: Final = 10
MOST: Final = 2000
_APPEALABLE: Final = frozenset({State.ON_HOLD, State.REJECTED})
ANSWERS: Final = {
    "upheld": "An operator looked again and left it as it was.",
    "overturned": "An operator looked again and approved it.",
}


class InvalidAppeal(VskillError):
    """An appeal that cannot be taken; nothing was changed."""

    code = "invalid_appeal"


def may_appeal(submission: Submission) -> bool:
    """Return whether an appeal is taken: it is held or refused, and there was none about this content."""
    if submission.state not in _APPEALABLE or not submission.text("contentHash"):
        return False
    appeal = submission.value.get("appeal")
    return not isinstance(appeal, dict) or appeal.get("contentHash") != submission.text("contentHash")


def appeal(env: WorkerEnv, submission_id: str, text: str) -> Submission:
    """Keep an appeal with its submission, which raises it in the review queue, and return the submission.

    Raises ``InvalidAppeal`` where there is none to take or ``text`` is not to be kept, and ``SubmissionNotFound``.
    """
    words = "\n".join(line.rstrip() for line in text.replace("\r\n", "\n").split("\n")).strip()
    submission = read_submission(env, submission_id)
    if not may_appeal(submission):
        raise InvalidAppeal(
            "An appeal is taken once for each version that is held or was refused. Nothing was changed."
        )
    if not LEAST <= len(words) <= MOST:
        raise InvalidAppeal(f"An appeal has {LEAST} to {MOST:,} characters; this one has {len(words):,}. Change it.")
    if hidden := first_hidden(words.replace("\n", "")):
        raise InvalidAppeal(
            f"The text has a hidden character, U+{ord(hidden):04X}. Nothing was sent: remove it and send it again."
        )
    now = isoformat(database_now(env.database))
    kept = {"text": words, "at": now, "contentHash": submission.text("contentHash")}
    return touch(env, submission, {"appeal": kept})


def appeal_as_json(value: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what the API says about the appeal in a submission's value, ``None`` where there is none."""
    kept = value.get("appeal")
    if not isinstance(kept, dict):
        return None
    return {
        "text": str(kept.get("text", "")),
        "at": str(kept.get("at", "")),
        "answer": None if has_open_appeal(value) else str(kept.get("answer", "")),
        "words": str(kept.get("words", "")) or None,
    }
