"""Reading every published skill from its entry: concurrently, without aliases, and with every entry counted."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Iterator

import pytest
from asgiref.sync import async_to_sync
from django.db import connection

from marketplace.catalog import (
    EnumeratedSkills,
    enumerate_published_skills,
    get_published_skills_list,
    quarantine_skill,
    rename_skill,
    stream_published_skills,
)
from marketplace.models import SkillEntry
from marketplace.records import SkillRecord
from marketplace.skills.enumeration import READ_WINDOW
from marketplace.skills.store import skill_namespace
from tests.marketplace.factories import publish_example, write_entries
from vskill.environments import WorkerEnv
from vskill.kv.namespace import KVNamespace
from vskill.kv.outcomes import Outcome
from vskill.kv.probe import ReadProbe, probe
from vskill.kv.threads import writers

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def counted() -> Iterator[ReadProbe]:
    """Return the counters of the KV layer, which count its own reads and not those of the function under test."""
    probe.reset()
    yield probe
    probe.reset()


def enumerated(env: WorkerEnv) -> EnumeratedSkills:
    """Enumerate as a management command does."""
    return async_to_sync(enumerate_published_skills)(env)


def write_alias(env: WorkerEnv, old: str, new: str) -> None:
    skill_namespace(env).put_sync(f"skill:alias:{old}", new)


def damage(key: str, value: str) -> None:
    """Write a value that the KV layer would never write."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE marketplace_skillentry SET value = %s WHERE key = %s", [value, key])


def test_tc_057_all_skills_are_read_concurrently(env: WorkerEnv, counted: ReadProbe) -> None:
    write_entries(env, 60)

    found = enumerated(env)

    assert len(found.skills) == 60
    assert counted.max_reads_in_flight == 60


def test_tc_075_n_entries_are_n_reads_in_flight(env: WorkerEnv, counted: ReadProbe) -> None:
    write_entries(env, 700)

    found = enumerated(env)

    assert found.counts.read == 700
    assert counted.reads == counted.max_reads_in_flight == 700
    # 700 keys are two chunks, and not 700 statements.
    assert counted.selects == 2


def test_tc_075_each_environment_reads_its_own(env: WorkerEnv, counted: ReadProbe) -> None:
    write_entries(env, 3)
    SkillEntry.objects.filter(key="skill:skill-00001").update(namespace="another")

    found = enumerated(env)

    assert [skill.slug for skill in found.skills] == ["skill-00000", "skill-00002"]
    assert counted.reads == 2


def test_tc_076_malformed_entries_are_skipped_and_counted(env: WorkerEnv) -> None:
    write_entries(env, 6)
    damage("skill:skill-00001", "{not json")
    damage("skill:skill-00002", '"a text and no skill"')
    damage("skill:skill-00003", '{"slug":"skill-00003","name":"no visibility"}')

    found = enumerated(env)

    assert [skill.slug for skill in found.skills] == ["skill-00000", "skill-00004", "skill-00005"]
    assert (found.counts.read, found.counts.malformed, found.counts.skipped) == (3, 3, 3)


def test_tc_076_entries_that_vanish_between_listing_and_reading_are_counted(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_entries(env, 4)
    namespace_class = type(skill_namespace(env))
    list_all = namespace_class.list_all

    async def list_then_delete(self: KVNamespace, prefix: str) -> AsyncIterator[str]:
        async for key in list_all(self, prefix):
            yield key
        await writers.run(SkillEntry.objects.filter(key="skill:skill-00002").delete)

    monkeypatch.setattr(namespace_class, "list_all", list_then_delete)

    found = enumerated(env)

    assert [skill.slug for skill in found.skills] == ["skill-00000", "skill-00001", "skill-00003"]
    assert (found.counts.read, found.counts.missing) == (3, 1)


def test_tc_077_aliases_are_left_out_before_anything_is_read(env: WorkerEnv, counted: ReadProbe) -> None:
    write_entries(env, 5)
    for number in range(20):
        write_alias(env, f"old-{number}", "skill-00001")
    counted.reset()

    found = enumerated(env)

    assert len(found.skills) == found.counts.read == 5
    assert found.counts.skipped == 0
    assert counted.reads == 5


def test_more_skills_than_one_page_of_keys_are_all_found(env: WorkerEnv, counted: ReadProbe) -> None:
    write_entries(env, 2500)
    write_alias(env, "old", "skill-00001")
    counted.reset()

    found = enumerated(env)

    assert [skill.slug for skill in found.skills] == [f"skill-{number:05}" for number in range(2500)]
    # Memory follows the window and not the number of skills.
    assert counted.max_reads_in_flight == 2000


def alive(kind: type) -> int:
    """Return how many objects of this class are alive."""
    return sum(type(one) is kind for one in gc.get_objects())


def test_a_stream_keeps_a_window_of_skills_and_not_all(env: WorkerEnv) -> None:
    write_entries(env, 5000)

    async def most_alive() -> tuple[int, int]:
        records = outcomes = seen = 0
        stream = stream_published_skills(env)
        async for _skill in stream:
            seen += 1
            if seen % 500 == 1:
                gc.collect()
                records, outcomes = max(records, alive(SkillRecord)), max(outcomes, alive(Outcome))
        assert seen == stream.counts.read == 5000
        return records, outcomes

    records, outcomes = async_to_sync(most_alive)()

    assert 0 < records < 10
    # Of the window that is being yielded, and perhaps of the one before it.
    assert READ_WINDOW <= outcomes <= 2 * READ_WINDOW


async def test_what_is_published_and_removed_during_a_stream_leaves_the_others_right(env: WorkerEnv) -> None:
    await writers.run(write_entries, env, 4500)
    rows = SkillEntry.objects.filter(namespace=env.name)
    seen: list[str] = []

    def change() -> None:
        # Behind, within the window that is being yielded, and ahead.
        rows.filter(key__in=["skill:skill-00000", "skill:skill-01500", "skill:skill-03000"]).delete()
        rows.filter(key="skill:skill-04000").update(key="skill:zzz-published-late")
        rows.filter(key="skill:skill-00001").update(key="skill:aaa-published-too-late")

    stream = stream_published_skills(env)
    async for skill in stream:
        seen.append(skill.slug)
        if len(seen) == 1000:
            await writers.run(change)

    stay = [f"skill-{number:05}" for number in range(4500) if number not in (3000, 4000)]
    # The one that was published late still says its old slug; it comes last, as its key does.
    assert seen == [*stay, "skill-04000"]
    assert stream.counts.read == 4499


def test_a_skill_whose_slug_begins_like_an_alias_is_no_alias(env: WorkerEnv) -> None:
    assert publish_example(env, name="alias").slug == "acme-alias"
    assert publish_example(env, name="alias-keeper").slug == "alias-keeper"


def test_hidden_skills_are_read_and_not_returned(env: WorkerEnv) -> None:
    write_entries(env, 2)
    quarantine_skill(env, "skill-00001", actor="test", reason="bad")

    found = enumerated(env)

    assert [skill.slug for skill in found.skills] == ["skill-00000"]
    assert found.counts.read == 2


def test_entries_and_list_agree(env: WorkerEnv) -> None:
    for name in ("alpha", "beta", "gamma"):
        publish_example(env, name=name)
    rename_skill(env, "beta", "delta", actor="test", reason="clearer")

    found = enumerated(env)
    page = async_to_sync(get_published_skills_list)(env, sort="name")

    assert (
        [skill.slug for skill in found.skills] == [skill.slug for skill in page.skills] == ["alpha", "delta", "gamma"]
    )
