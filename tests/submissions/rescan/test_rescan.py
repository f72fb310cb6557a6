"""Scanning again what is published: what is due, what follows from a worse or a better verdict, and the pace."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext

from marketplace.catalog import SkillFilters
from marketplace.likeness.known import find_equal
from marketplace.likeness.published import files_of, same_content
from marketplace.likeness.signature import signature
from marketplace.models import (
    HistoryEvent,
    LaterScan,
    LogPending,
    PastScan,
    ReferenceEntry,
    SkillEntry,
    SkillFlag,
    SkillVersion,
    VersionShingle,
)
from marketplace.skills.capability_renewal import wrong_capabilities
from marketplace.skills.count_check import wrong_counts
from marketplace.skills.listing import facet_counts
from submissions import messages
from submissions.models import QueueMessage
from submissions.operations import approve
from submissions.queue.database import get_queue
from submissions.rescan import feed as feeding
from submissions.rescan.choice import Walks, choose, left_to_scan
from submissions.rescan.feed import STATE_KEY, feed, send_skill
from submissions.rescan.record import record
from submissions.rescan.work import give_up, rescan
from submissions.states import State
from submissions.verification.engine import rules
from submissions.verification.engines.base import EngineResult, EngineStatus
from submissions.verification.scan_keys import current_key, engines_of
from submissions.verification.verdict import Decision, Verdict
from tests.marketplace.factories import publish_example, skill_md
from tests.marketplace.pages.page_factory import contract, reference
from tests.submissions.front_door import EVIL, drain, repository, skills, submitted_one, worked_off
from vskill.environments import WorkerEnv
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.threads import readers, writers

pytestmark = pytest.mark.django_db(transaction=True)
BAD = EVIL.partition("# Keys")[2]


def key_of(env: WorkerEnv) -> str:
    return current_key(engines_of(env))


def publish(env: WorkerEnv, name: str, body: str = "Do it well.", **fields: Any) -> SkillVersion:
    """Publish a skill as it was before there were keys of scans, by engines that found nothing."""
    files = {"SKILL.md": skill_md(name, f"Does {name}.", body)}
    made = publish_example(env, name=name, files=files, skill_path=name, **fields)
    version: SkillVersion = SkillVersion.objects.get(skill__slug=made.slug, version=made.version)
    return version


async def work_off(env: WorkerEnv, **how: Any) -> feeding.Progress:
    done = await feed(env, **how)
    await drain(env)
    return done


async def test_what_is_published_now_has_the_key_and_is_not_scanned_again(env: WorkerEnv, tmp_path: Path) -> None:
    published = await worked_off(env, await submitted_one(env, repository(tmp_path, skills("one"))))
    assert published.state is State.PUBLISHED
    version = await SkillVersion.objects.aget()
    assert version.scan_key == await readers.run(key_of, env)
    assert (await work_off(env)).sent == ()
    assert not await LaterScan.objects.aexists()


async def test_a_verdict_that_got_worse_flags_the_version_and_a_better_one_clears_it(
    env: WorkerEnv, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = await writers.run(publish, env, "bad", BAD), await writers.run(publish, env, "good")
    done = await work_off(env)
    assert set(done.sent) == {bad.pk, good.pk}

    flag = await SkillFlag.objects.aget()
    assert (flag.version_id, flag.kind, flag.details["publishedWith"]) == (bad.pk, "verdict", "clear")
    assert flag.details["verdict"].startswith("held")
    later = await LaterScan.objects.aget(version=good)
    assert (later.verdict, {one["name"] for one in later.engines}) == ("clear", {"vskill", "skilltotal"})
    assert (await readers.run(lambda: SkillEntry.objects.get(slug="bad"))).flag_reason
    page = (await readers.run(client.get, "/skills/bad/scan")).content.decode()
    assert "Scanned again" in page
    assert "collector.invalid" in page

    # The next engines see nothing in it any more.
    await SkillVersion.objects.filter(pk=bad.pk).aupdate(scan_key="older", verdict="held_high")
    await work_off(env)
    assert not await SkillFlag.objects.aexists()
    assert (await readers.run(lambda: SkillEntry.objects.get(slug="bad"))).flag_reason == ""
    # The log has each verdict that was another one, and the flag; the second scan said what the first did.
    told = LogPending.objects.filter(version_number=bad.pk).order_by("pk").values_list("body", flat=True)
    [published, scanned, flagged, cleared] = [json.loads(body) async for body in told]
    assert [one["type"] for one in (published, scanned, flagged, cleared)] == [
        *("published", "scanned", "flagged", "flag-cleared"),
    ]
    assert (published["verdict"], scanned["verdict"]) == ("clear", flag.details["verdict"])
    assert (scanned["contentHash"], cleared["cause"]) == (bad.content_hash, "verdict")
    assert await LogPending.objects.filter(version_number=good.pk).acount() == 1


async def test_what_a_skill_does_and_refers_to_is_renewed_with_the_verdict(env: WorkerEnv, client: Client) -> None:
    gone, changed = "https://gone.invalid/x", "https://changed.invalid/x"
    body = "Read https://docs.invalid/rules.txt first.\n\n```sh\ncurl -O https://tools.invalid/x.bin\n```"
    earlier = contract(reference(gone), reference(changed))
    version = await writers.run(publish, env, "one", body, contract=earlier)
    use = await ReferenceEntry.objects.aget(version_number=version.pk, url=changed)
    value = {**json.loads(use.value), "changedAt": "2026-01-01T00:00:00.000Z"}
    await KVNamespace(ReferenceEntry, env).put(use.key, value)

    await work_off(env)
    told = (await readers.run(client.get, "/api/v1/skills/one")).json()
    assert "downloads" in {one["name"] for one in told["contract"]["does"]}
    named = {one["name"] for one in told["references"]["items"]}
    assert named == {"https://docs.invalid/rules.txt", "https://tools.invalid/x.bin"}
    # What has changed stays, because a flag is about it.
    uses = ReferenceEntry.objects.filter(version_number=version.pk)
    assert {use.url async for use in uses} == named | {changed}


def test_what_a_scan_finds_a_skill_to_do_is_listed_and_counted_at_once(env: WorkerEnv) -> None:
    first = publish(env, "one", capabilities=("filesystem_write",))
    latest = publish(env, "one", "Do it better.", capabilities=("filesystem_write",))
    row, events = SkillEntry.objects.get(), HistoryEvent.objects.count()
    clear = Decision(Verdict.CLEAR, "No known pattern was found.", (), (), "")
    found = EngineResult("vskill", "9", EngineStatus.COMPLETE, capabilities=("network",), contract=contract())
    failed = EngineResult("other", "9", EngineStatus.FAILED)

    def listed() -> set[str]:
        assert wrong_counts(env) == []
        assert wrong_capabilities(env) == []
        return {one.value for one in facet_counts(env, SkillFilters())["capability"]}

    record(env, first, "key", clear, [found])
    assert listed() == {"filesystem_write"}
    # What an engine that failed had called it before is kept.
    record(env, latest, "key", clear, [found, failed])
    assert listed() == {"reads_files", "sends", "filesystem_write"}
    record(env, latest, "next", clear, [found], capabilities=("shell_execution",))
    assert listed() == {"reads_files", "sends", "executes"}
    after = SkillEntry.objects.get()
    assert (after.changed_at, HistoryEvent.objects.count()) == (row.changed_at, events)


async def test_a_scan_that_no_engine_finished_leaves_what_is_known_of_a_skill(env: WorkerEnv) -> None:
    kept = contract(reference("https://docs.invalid/rules.txt"))
    version = await writers.run(publish, env, "one", contract=kept)
    await give_up(env, str(version.pk), "the archive is gone")
    await version.arefresh_from_db()
    assert version.contract == kept
    assert await ReferenceEntry.objects.filter(version_number=version.pk).aexists()


def test_one_update_writes_all_that_a_scan_knows_better_about_a_version(env: WorkerEnv) -> None:
    version = publish(env, "one")
    version.normal_digest = ""
    known = signature(list(files_of(env, version)))
    found = EngineResult("vskill", "9", EngineStatus.COMPLETE, contract=contract())
    clear = Decision(Verdict.CLEAR, "No known pattern was found.", (), (), "")
    with CaptureQueriesContext(connections[env.database]) as captured:
        record(env, version, "key", clear, [found], signature=known)
    version.refresh_from_db()
    assert (version.scan_key, version.contract, version.normal_digest) == ("key", contract(), known.normal_digest)
    assert sum(one["sql"].startswith('UPDATE "marketplace_skillversion"') for one in captured) == 1


async def test_a_new_version_of_an_engine_scans_everything_once_more_and_only_once(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = await writers.run(publish, env, "one")
    assert (await work_off(env)).sent == (version.pk,)
    assert (await work_off(env)).sent == ()
    before = (await LaterScan.objects.aget()).scan_key

    monkeypatch.setattr(rules, "VERSION", "newer")
    assert (await work_off(env)).sent == (version.pk,)
    assert (await work_off(env)).sent == ()
    assert (await LaterScan.objects.aget()).scan_key != before
    history = PastScan.objects.order_by("pk").values_list("outcome", flat=True)
    assert [one async for one in history] == ["clear", "clear"]


async def test_what_an_operator_approved_is_not_flagged_for_the_same_verdict(
    env: WorkerEnv, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    held = await worked_off(env, await submitted_one(env, repository(tmp_path, {"key-helper/SKILL.md": EVIL})))
    await writers.run(approve, env, held.id, actor="ada", reason="read it")
    assert (await worked_off(env, held)).state is State.PUBLISHED
    await SkillVersion.objects.aupdate(scan_key="older")
    await work_off(env)
    assert (await LaterScan.objects.aget()).verdict == held.text("verdict")
    assert "other content" not in caplog.text
    assert not await SkillFlag.objects.aexists()


async def test_a_flag_that_an_operator_took_off_does_not_come_back_with_the_next_engine(
    env: WorkerEnv, admin_client: Client
) -> None:
    version = await writers.run(publish, env, "bad", BAD)
    await work_off(env)
    flag = await SkillFlag.objects.aget()
    address = f"/admin/marketplace/skillflag/operate/clear/?ids={flag.pk}"
    await readers.run(admin_client.post, address, {"ids": flag.pk, "reason": "a lesson"})
    await SkillVersion.objects.filter(pk=version.pk).aupdate(scan_key="older")
    await work_off(env)
    assert not await SkillFlag.objects.aexists()


async def test_the_policy_quarantines_what_is_flagged_and_the_next_better_scan_ends_that(env: WorkerEnv) -> None:
    strict = replace(env, policy=replace(env.policy, quarantine_flags=("verdict",)))
    version = await writers.run(publish, env, "bad", BAD)
    await feed(strict)
    await rescan(strict, str(version.pk))
    await version.arefresh_from_db()
    assert version.quarantined_at is not None
    await SkillVersion.objects.filter(pk=version.pk).aupdate(scan_key="older", verdict="held_high")
    await rescan(strict, str(version.pk))
    await version.arefresh_from_db()
    assert version.quarantined_at is None


async def test_a_version_of_an_earlier_release_is_found_by_its_text_after_its_scan(env: WorkerEnv) -> None:
    version = await writers.run(publish, env, "old", " ".join(f"word{number}" for number in range(200)))
    await SkillVersion.objects.aupdate(normal_digest="")
    await VersionShingle.objects.all().adelete()
    made = signature(await readers.run(lambda: list(files_of(env, version))))
    assert await readers.run(same_content, env, "", made.normal_digest) == []
    await work_off(env)
    assert [one.pk for one in await readers.run(same_content, env, "", made.normal_digest)] == [version.pk]
    assert await readers.run(find_equal, env, "", made.normal_digest) is None


async def test_an_engine_that_fails_flags_nobody_and_is_not_tried_for_ever(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = await writers.run(publish, env, "one")
    await SkillVersion.objects.aupdate(zip_sha256="0" * 64)
    await feed(env)
    message = await QueueMessage.objects.aget()
    await give_up(env, message.subject, "the archive is gone")
    await version.arefresh_from_db()
    assert version.scan_key == await readers.run(key_of, env)
    later = await LaterScan.objects.aget()
    assert (later.verdict, "the archive is gone" in later.verdict_summary) == ("inconclusive", True)
    assert not await SkillFlag.objects.aexists()


async def test_a_skill_of_a_trusted_owner_is_neither_read_nor_flagged_where_the_policy_spares_it(
    env: WorkerEnv,
) -> None:
    version = await writers.run(publish, env, "bad", BAD, verdict="unscanned")
    trusting = replace(env, policy=replace(env.policy, trusted_owners=("github.com/acme",), scan_trusted_owners=False))
    assert await rescan(trusting, str(version.pk)) is None
    await version.arefresh_from_db()
    assert version.scan_key
    assert not await LaterScan.objects.aexists()


async def test_the_most_downloaded_and_the_newest_are_sent_first_and_each_once(env: WorkerEnv) -> None:
    versions = [await writers.run(publish, env, f"skill-{number}") for number in range(6)]
    await SkillEntry.objects.filter(slug="skill-1").aupdate(downloads=90)
    await SkillEntry.objects.filter(slug="skill-0").aupdate(downloads=50)
    key = await readers.run(key_of, env)

    chosen, walks = await readers.run(choose, env, key, Walks(), 4)
    assert chosen == [versions[1].pk, versions[5].pk, versions[0].pk, versions[4].pk]
    rest, walks = await readers.run(choose, env, key, walks, 10)
    assert set(rest) | set(chosen) == {one.pk for one in versions}
    assert walks.ended
    assert Walks.from_value(json.loads(json.dumps(walks.to_value()))) == walks


async def test_no_more_are_sent_than_the_policy_permits_and_than_may_wait(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(8):
        await writers.run(publish, env, f"skill-{number}")
    slow = replace(env, policy=replace(env.policy, rescans_per_hour=24))
    assert len((await feed(slow)).sent) == 2
    assert len((await feed(slow)).sent) == 0
    # An hour later, by what is stored: two at once and no more, because nothing is saved up.
    state = await KVNamespace(KVEntry, env).get(STATE_KEY)
    await KVNamespace(KVEntry, env).put(STATE_KEY, {**state.value, "at": "2020-01-01T00:00:00+00:00"})
    assert len((await feed(slow)).sent) == 2
    assert len((await feed(replace(slow, policy=replace(slow.policy, rescans_per_hour=0)))).sent) == 0

    monkeypatch.setattr(feeding, "MOST_WAITING", 5)
    await KVNamespace(KVEntry, env).delete(STATE_KEY)
    assert len((await feed(env)).sent) == 1
    assert len(await readers.run(messages.waiting_rescans, env)) == 5


async def test_a_dry_run_says_how_many_and_changes_nothing(env: WorkerEnv, capsys: pytest.CaptureFixture[str]) -> None:
    await writers.run(publish, env, "one")
    dry = await feed(env, dry_run=True)
    assert (len(dry.sent), dry.total, dry.scanned) == (1, 1, 0)
    assert not await QueueMessage.objects.aexists()
    assert not (await KVNamespace(KVEntry, env).get(STATE_KEY)).found


def test_the_command_tells_how_far_it_is_and_sends_one_skill_at_once(
    env: WorkerEnv, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(env, "one")
    publish(env, "two")
    call_command("rescan", "--limit", "1", "--json")
    told = json.loads(capsys.readouterr().out)
    assert (told["sent"], told["total"], told["left"], told["waiting"]) == (1, 2, 2, 1)
    assert send_skill(env, "one") or send_skill(env, "two")
    call_command("rescan", "--skill", "one")
    assert "0 of 2 versions" in capsys.readouterr().out
    assert QueueMessage.objects.filter(kind=messages.RESCAN).count() == 2
    call_command("rescan", "--dry-run")
    assert "would be sent" in capsys.readouterr().out
    for wrong in (("--skill", "none"), ("--limit", "0"), ("--skill", "one", "--dry-run")):
        with pytest.raises(CommandError):
            call_command("rescan", *wrong)


async def test_a_new_submission_goes_before_every_waiting_scan_but_the_next(env: WorkerEnv, tmp_path: Path) -> None:
    for number in range(8):
        await writers.run(publish, env, f"skill-{number}")
    await feed(env)
    submission = await submitted_one(env, repository(tmp_path, skills("new")))
    received = await get_queue(env).receive(env.name, 9, worker="test")
    subjects = [message.subject for message in received.messages]
    assert subjects.index(submission.id) <= 1


def test_choosing_and_asking_whether_anything_is_left_follow_indexes(env: WorkerEnv) -> None:
    publish(env, "one")
    key = key_of(env)
    with CaptureQueriesContext(connections[env.database]) as captured:
        choose(env, key, Walks(downloads=5, skill=10**9, before=10**9), 5)
        assert left_to_scan(env, key).exists()
    assert len(captured) >= 4
    if connections[env.database].vendor == "sqlite":
        for one in captured:
            with connections[env.database].cursor() as cursor:
                cursor.execute(f"EXPLAIN QUERY PLAN {one['sql']}")
                plan = " ".join(str(row[-1]) for row in cursor.fetchall())
            assert "SCAN" not in plan, (one["sql"], plan)
            assert "TEMP B-TREE" not in plan, (one["sql"], plan)
