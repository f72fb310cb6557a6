"""A consumer is killed or stopped in the middle of a batch: nothing is lost, nothing is published twice."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.journey import WHOLE_WAY
from tests.end_to_end.processes import QUICK_QUEUE, Instance, instance, until
from tests.git_factory import make_repository, skill_md
from tests.process_groups import Started

SKILLS = [f"skill-{number:02}" for number in range(12)]
SCANNING = "TIER1_SCANNING"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Instance]:
    with instance(tmp_path / "data", **QUICK_QUEUE) as made:
        files = {f"{name}/SKILL.md": skill_md(name) for name in SKILLS}
        repository = make_repository(made.data_dir / "skills.git", files)
        made.manage("submit", repository.as_uri())
        assert made.states() == dict.fromkeys(SKILLS, "RECEIVED")
        yield made


def in_the_middle(installation: Instance, published: int) -> bool:
    """Tell whether some submissions are done, some in progress and some waiting."""
    count = Counter(installation.states().values())
    return count["PUBLISHED"] >= published and count[SCANNING] > 0 and count["PUBLISHED"] < len(SKILLS)


def kill_in_the_middle(installation: Instance, consumer: Started, published: int) -> None:
    consumer.until(lambda: in_the_middle(installation, published))
    consumer.signal(signal.SIGKILL)
    assert consumer.ends() == -signal.SIGKILL
    # Its children, which fetch and scan, die with it.
    until(lambda: installation.processes() == {})


def everything_is_done_once(installation: Instance) -> None:
    assert installation.states() == dict.fromkeys(SKILLS, "PUBLISHED")
    assert installation.rows("SELECT count(*) FROM submissions_queuemessage") == [(0,)]
    walked = list(zip(["", *WHOLE_WAY], WHOLE_WAY, strict=False))
    assert list(installation.steps().values()) == [walked] * len(SKILLS)
    versions = installation.rows("SELECT skill_id, version FROM marketplace_skillversion")
    assert Counter(versions) == Counter(set(versions))
    assert len(versions) == len(SKILLS)
    events = "SELECT count(*), count(DISTINCT skill_id) FROM marketplace_historyevent WHERE action = 'published'"
    assert installation.rows(events) == [(len(SKILLS), len(SKILLS))]


def test_a_consumer_killed_twice_in_the_middle_loses_nothing_and_publishes_once(installation: Instance) -> None:
    for published in (1, 4):
        with installation.started("consume", "--max-concurrency", "1") as consumer:
            kill_in_the_middle(installation, consumer, published)
    assert set(installation.states().values()) > {"PUBLISHED"}
    assert "consumer ended" in installation.manage("consume", "--drain")
    everything_is_done_once(installation)


def test_a_second_consumer_takes_over_from_a_killed_one(installation: Instance) -> None:
    with (
        installation.started("consume", "--max-concurrency", "1") as killed,
        installation.started("consume", "--max-concurrency", "1") as other,
    ):
        killed.until(lambda: in_the_middle(installation, 1))
        killed.signal(signal.SIGKILL)
        assert killed.ends() == -signal.SIGKILL
        other.until(lambda: set(installation.states().values()) == {"PUBLISHED"})
        other.until(lambda: installation.rows("SELECT count(*) FROM submissions_queuemessage") == [(0,)])
        other.signal(signal.SIGTERM)
        assert other.ends() == 0
    everything_is_done_once(installation)


def test_a_consumer_told_to_end_finishes_what_it_holds_and_exits_with_0(installation: Instance) -> None:
    with installation.started("consume", "--max-concurrency", "1") as consumer:
        consumer.until(lambda: in_the_middle(installation, 1))
        consumer.signal(signal.SIGTERM)
        assert consumer.ends() == 0
    assert SCANNING not in installation.states().values()
    assert "RECEIVED" in installation.states().values()
    installation.manage("consume", "--drain")
    everything_is_done_once(installation)


def test_a_consumer_without_time_to_finish_gives_back_what_it_holds(installation: Instance) -> None:
    installation.variables["VSKILL_QUEUE_SHUTDOWN_GRACE"] = "0"
    with installation.started("consume", "--max-concurrency", "1") as consumer:
        consumer.until(lambda: in_the_middle(installation, 1))
        consumer.signal(signal.SIGTERM)
        assert consumer.ends() == 0
    assert set(installation.states().values()) != {"PUBLISHED"}
    # Released at once, and not counted as an error or a crash.
    held = "SELECT count(*) FROM submissions_queuemessage WHERE leased_until IS NOT NULL OR errors > 0 OR crashes > 0"
    assert installation.rows(held) == [(0,)]
    installation.manage("consume", "--drain")
    everything_is_done_once(installation)
