"""Workers on a sick machine: they give their work back, and the healthy ones do it."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.git_factory import make_repository, skill_md
from tests.reliability.conftest import Record
from tests.reliability.installation import Installation, installation

SKILLS = 12
PUBLISHED = "SELECT count(*) FROM submissions_submissionentry WHERE state = 'PUBLISHED'"


def submit(one: Installation, folder: Path) -> None:
    skills = {f"skills/skill-{number}/SKILL.md": skill_md(f"skill-{number}") for number in range(SKILLS)}
    repository = make_repository(folder / "data" / "skills.git", skills)
    one.run("submit_to", names=["default"], url=repository.as_uri())


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside a healthy one"])
def test_a_worker_that_is_short_of_descriptors_spoils_nothing(tmp_path: Path, record: Record, beside: bool) -> None:
    with installation(tmp_path) as one:
        submit(one, tmp_path)
        sick = one.start("short_of_descriptors", words=["consume"], spare=12)
        if beside:
            healthy = one.start("command", words=["consume"])
            one.wait_for(PUBLISHED, SKILLS)
            healthy.signal(signal.SIGTERM)
            healthy.succeeds()
        else:
            sick.waits_for("this machine cannot work, so nothing is taken until it can")
            assert one.number(PUBLISHED) < SKILLS
        sick.signal(signal.SIGTERM)
        sick.ends()
        one.run("command", words=["consume", "--drain"])
        states = one.rows("SELECT state, count(*) FROM submissions_submissionentry GROUP BY state")
        held = one.number("SELECT count(*) FROM submissions_submissiontransition WHERE to_state = 'ON_HOLD'")
        parked = one.number("SELECT count(*) FROM submissions_queuemessage")
    assert (states, held, parked) == ([("PUBLISHED", SKILLS)], 0, 0)
    where = "beside a healthy one" if beside else "alone, then a healthy one"
    record(f"a worker without descriptors, {where}", f"{SKILLS} of {SKILLS} published, none held")
