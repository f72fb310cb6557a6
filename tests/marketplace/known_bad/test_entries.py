"""Known bad content: what is published of it is found and flagged, honest relatives are spared, and all is undone."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext

from marketplace.errors import PublicationBlocked
from marketplace.known_bad.entries import BadContent, InvalidKnownBad, Remembered, entries, forget, remember
from marketplace.known_bad.lists import as_document, read_list
from marketplace.likeness.known import find_equal, find_similar
from marketplace.likeness.published import files_of, same_content, similar_content
from marketplace.likeness.signature import Signature, signature
from marketplace.models import HistoryEvent, KnownBad, SkillFlag, SkillVersion
from tests.marketplace.factories import publish_example, skill_md
from vskill.environments import WorkerEnv
from vskill.kv.codec import encode

pytestmark = pytest.mark.django_db(transaction=True)
BODY = " ".join(f"word{number}" for number in range(400))
THEIRS = "https://github.com/other/skills"


def publish(env: WorkerEnv, name: str, body: str = BODY, **fields: Any) -> SkillVersion:
    made = publish_example(env, name=name, files={"SKILL.md": skill_md("same", "Same words.", body)}, **fields)
    return SkillVersion.objects.select_related("skill").get(skill__slug=made.slug, version=made.version)


def signature_of(env: WorkerEnv, version: SkillVersion) -> Signature:
    return signature(files_of(env, version))


def bad(env: WorkerEnv, version: SkillVersion, **fields: Any) -> BadContent:
    values = {"name": "thief", "reason": "It takes keys.", "signature": signature_of(env, version)}
    return BadContent(**{**values, **fields})


def as_bad(env: WorkerEnv, version: SkillVersion, **fields: Any) -> Remembered:
    return remember(env, bad(env, version, **fields), actor="ada")


def test_the_same_content_of_another_owner_under_another_name_is_flagged(env: WorkerEnv) -> None:
    first = publish(env, "first")
    again = publish(env, "second", BODY.replace(" ", "\n"), repo_url=THEIRS)
    honest = publish(env, "honest", " ".join(reversed(BODY.split())))
    done = as_bad(env, first, content_hash=first.content_hash)

    assert {one.pk for one in done.flagged} == {first.pk, again.pk}
    flags = SkillFlag.objects.order_by("version_id")
    assert [(one.version_id, one.kind) for one in flags] == [(first.pk, "known_bad"), (again.pk, "known_bad")]
    again.refresh_from_db()
    assert "thief" in again.flag_reason
    assert "It takes keys" in again.flag_reason
    honest.refresh_from_db()
    assert honest.flag_reason == ""


def test_similar_content_of_the_same_publisher_is_flagged_as_similar(env: WorkerEnv) -> None:
    first = publish(env, "first", skill_path="a")
    near = publish(env, "near", BODY + " and a few words more", skill_path="b")
    done = as_bad(env, first, publisher=first.skill.publisher)

    assert {one.pk for one in done.flagged} == {first.pk, near.pk}
    assert SkillFlag.objects.get(version=near).kind == "similar"
    found = find_similar(env, signature_of(env, near).sketch)
    assert found is not None
    assert found[0] == done.entry
    assert found[1].contained > 0.9


def test_an_honest_skill_of_others_is_not_accused_for_a_copy_with_a_few_lines_more(env: WorkerEnv) -> None:
    honest = publish(env, "honest")
    copy = signature([("SKILL.md", skill_md("same", "Same words.", BODY + " then send the keys away").encode())])
    done = remember(env, BadContent("poisoned", "It sends keys.", signature=copy), actor="ada")

    assert [one.version.pk for one in done.relatives] == [honest.pk]
    assert not SkillFlag.objects.exists()
    assert find_similar(env, signature_of(env, honest).sketch) is None
    assert find_equal(env, "", copy.normal_digest) == done.entry


def test_publishing_known_bad_content_is_refused_in_the_transaction_itself(env: WorkerEnv) -> None:
    first = publish(env, "first")
    as_bad(env, first)
    with pytest.raises(PublicationBlocked, match="thief"):
        publish(env, "later", BODY.replace(" ", "  "), repo_url=THEIRS)
    assert SkillVersion.objects.count() == 1


def test_remembering_twice_keeps_one_entry_with_the_newer_reason(env: WorkerEnv) -> None:
    first = publish(env, "first")
    assert as_bad(env, first).created
    done = as_bad(env, first, reason="It takes passwords.", content_hash=first.content_hash)
    assert not done.created
    entry = KnownBad.objects.get()
    assert (entry.reason, entry.content_hash) == ("It takes passwords.", first.content_hash)
    assert "passwords" in SkillFlag.objects.get().reason


def test_forgetting_takes_off_the_flags_and_nothing_else(env: WorkerEnv) -> None:
    first, other = publish(env, "first"), publish(env, "other", " ".join(reversed(BODY.split())))
    entry = as_bad(env, first).entry
    as_bad(env, other, name="another")
    assert forget(env, entry.pk, actor="ada", reason="It was a test.")
    assert not forget(env, entry.pk, actor="ada", reason="It was a test.")

    assert [one.version_id for one in SkillFlag.objects.all()] == [other.pk]
    assert find_equal(env, "", signature_of(env, first).normal_digest) is None
    assert find_similar(env, signature_of(env, first).sketch) is None
    event = HistoryEvent.objects.get(action="no longer known bad")
    assert (event.actor, event.reason) == ("ada", "It was a test.")


@pytest.mark.parametrize("fields", [{"reason": " "}, {"name": ""}, {"signature": Signature()}])
def test_an_entry_needs_a_name_a_reason_and_something_to_recognise_it_by(
    env: WorkerEnv, fields: dict[str, Any]
) -> None:
    version = publish(env, "first")
    with pytest.raises(InvalidKnownBad):
        remember(env, bad(env, version, **fields), actor="ada")
    assert not KnownBad.objects.exists()


def test_an_operator_quarantines_and_remembers_a_version_in_one_step(admin_client: Client, env: WorkerEnv) -> None:
    version = publish(env, "first")
    page = f"/admin/marketplace/skillentry/operate/known-bad/?ids={version.skill_id}&version={version.version}"
    assert "remember as known bad" in admin_client.get(page).content.decode()
    admin_client.post(page, {"ids": version.skill_id, "reason": "It takes keys."})

    version.refresh_from_db()
    entry = KnownBad.objects.get()
    assert version.quarantined_at is not None
    assert (entry.content_hash, entry.actor) == (version.content_hash, "admin")
    assert "It takes keys" in admin_client.get("/admin/marketplace/knownbad/").content.decode()
    assert admin_client.get(f"/admin/marketplace/knownbad/{entry.pk}/change/").status_code == 200
    forgetting = f"/admin/marketplace/knownbad/operate/forget/?ids={entry.pk}"
    assert admin_client.get(forgetting).status_code == 200
    admin_client.post(forgetting, {"ids": entry.pk, "reason": "No."})
    assert not KnownBad.objects.exists()


def test_a_list_is_read_as_it_is_written(env: WorkerEnv) -> None:
    as_bad(env, publish(env, "first"), content_hash="ab" * 32, source="a list")
    document = encode(as_document(entries(env)))
    [line] = read_list(document)
    assert line.content is not None
    before = KnownBad.objects.get()
    forget(env, before.pk, actor="ada", reason="moved")
    remember(env, line.content, actor="ben")
    after = KnownBad.objects.get()
    for name in ("name", "reason", "content_hash", "normal_digest", "sketch", "source"):
        assert getattr(after, name) == getattr(before, name), name


def test_each_bad_line_of_a_list_says_what_is_wrong_with_it(env: WorkerEnv) -> None:
    text = (
        "name,reason,contentHash,date\n"
        f"good,Seen.,{'AB' * 32},2026-01-02\n"
        "short,Seen.,abc,\n"
        f",Seen.,{'ab' * 32},\n"
        f"when,Seen.,{'ab' * 32},yesterday\n"
        "none,Seen.,,\n"
    )
    lines = read_list(text)
    assert [bool(line.content) for line in lines] == [True, False, False, False, False]
    assert lines[0].content is not None
    assert lines[0].content.content_hash == "ab" * 32
    for line, word in zip(lines[1:], ("64", "name", "date", "neither"), strict=True):
        assert word in line.problem
    for bad_list in ('{"format": 9, "entries": []}', '{"entries": 1}', "{"):
        with pytest.raises(ValueError, match=r"."):
            read_list(bad_list)


def test_what_is_published_is_found_by_an_index_and_not_by_a_scan(env: WorkerEnv) -> None:
    version = publish(env, "first")
    sketch = signature_of(env, version).sketch
    with CaptureQueriesContext(connections[env.database]) as captured:
        same_content(env, version.content_hash, version.normal_digest)
        similar_content(env, sketch)
    read = [one["sql"] for one in captured if one["sql"].startswith("SELECT")]
    assert len(read) >= 4
    if connections[env.database].vendor == "sqlite":
        for statement in read:
            with connections[env.database].cursor() as cursor:
                cursor.execute(f"EXPLAIN QUERY PLAN {statement}")
                plan = " ".join(str(row[-1]) for row in cursor.fetchall())
            assert "SCAN marketplace" not in plan, (statement, plan)
