"""What a submission's message says of its publisher, and how much that counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from submissions.messages import send
from submissions.models import QueueMessage
from tests.submissions.factories import make_submission
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("repo_url", "publisher", "weight"),
    [
        ("https://github.com/Acme/skills", "github.com/acme", 4.0),
        ("https://git.example.org/team/sub/skills", "git.example.org/team", 0.5),
        ("https://git.example.org/other/skills", "git.example.org/other", 1.0),
        ("https://[", "", 1.0),
    ],
)
def test_a_submission_is_queued_on_behalf_of_the_publisher_of_its_repository_with_its_weight(
    env: WorkerEnv, repo_url: str, publisher: str, weight: float
) -> None:
    weights = (("github.com/acme", 4.0), ("git.example.org/team", 0.5))
    here = replace(env, policy=replace(env.policy, queue_weights=weights))
    submission = make_submission(env, repoUrl=repo_url)
    assert send(here, submission.id)
    message = QueueMessage.objects.get(subject=submission.id)
    assert (message.publisher, message.weight, message.turn) == (publisher, weight, 1 / weight)
