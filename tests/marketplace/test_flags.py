"""Flags: who is told of one, what clears it, and that the policy decides about a quarantine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from marketplace.catalog import SkillNotFound, find_skill_sync, quarantine_version, yank_version
from marketplace.flags import FlagKind, clear, flag, flags_of
from marketplace.models import HistoryEvent, SkillEntry, SkillFlag, SkillVersion
from marketplace.skills.moderation import ReasonMissing
from tests.marketplace.factories import publish_example
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)
REASON = "A later scan found that it sends keys away\u202e."
SAID = "A later scan found that it sends keys away"


def entry() -> SkillEntry:
    found: SkillEntry = SkillEntry.objects.get(slug="hello-skill")
    return found


def version(number: str = "1.0.0") -> SkillVersion:
    return SkillVersion.objects.get(version=number)


def quarantining(env: WorkerEnv, *kinds: str) -> WorkerEnv:
    return replace(env, policy=replace(env.policy, quarantine_flags=kinds))


def test_a_flag_is_written_once_with_its_history_and_moves_the_skill_in_no_list(env: WorkerEnv) -> None:
    publish_example(env, declared_version="1.0.0")
    before = entry().changed_at

    assert flag(env, "hello-skill", FlagKind.VERDICT, REASON, details={"verdict": "held"})
    assert not flag(env, "hello-skill", FlagKind.VERDICT, REASON, details={"verdict": "held"})

    [found] = flags_of(env, version())
    assert (found.kind, found.details) == ("verdict", {"verdict": "held"})
    assert SAID in entry().flag_reason
    assert entry().record.flag_reason == entry().flag_reason == version().flag_reason
    assert "\u202e" not in entry().flag_reason
    assert entry().changed_at == before
    assert HistoryEvent.objects.filter(action="flagged: verdict", version="1.0.0").count() == 1


def test_each_kind_clears_its_own_flag_and_the_other_stays(env: WorkerEnv) -> None:
    publish_example(env, declared_version="1.0.0")
    flag(env, "hello-skill", FlagKind.VERDICT, "First.")
    flag(env, "hello-skill", FlagKind.OUTSIDE, "Second.")
    assert entry().flag_reason == "First. Second."

    assert clear(env, "hello-skill", FlagKind.VERDICT)
    assert not clear(env, "hello-skill", FlagKind.VERDICT)
    assert entry().flag_reason == "Second."
    flag(env, "hello-skill", FlagKind.OUTSIDE, "Third.")
    assert entry().flag_reason == "Third."


def test_a_new_version_is_not_flagged_and_the_old_one_stays_so(env: WorkerEnv) -> None:
    publish_example(env, declared_version="1.0.0")
    flag(env, "hello-skill", FlagKind.VERDICT, REASON)
    publish_example(env, declared_version="2.0.0", body="Mended.")
    assert entry().flag_reason == ""
    assert SAID in version().flag_reason

    yank_version(env, "hello-skill", "2.0.0", actor="ada", reason="broken")
    assert SAID in entry().flag_reason


def test_a_flag_without_reason_or_skill_or_version_changes_nothing(env: WorkerEnv) -> None:
    publish_example(env, declared_version="1.0.0")
    with pytest.raises(ReasonMissing):
        flag(env, "hello-skill", FlagKind.VERDICT, " \n")
    with pytest.raises(SkillNotFound):
        flag(env, "no-skill", FlagKind.VERDICT, REASON)
    with pytest.raises(SkillNotFound):
        flag(env, "hello-skill", FlagKind.VERDICT, REASON, version="9.0.0")
    assert not SkillFlag.objects.exists()


def test_the_policy_quarantines_for_its_kinds_and_the_last_flag_ends_that(env: WorkerEnv) -> None:
    publish_example(env, declared_version="1.0.0")
    publish_example(env, declared_version="2.0.0", body="Second.")
    strict = quarantining(env, "known_bad")
    flag(strict, "hello-skill", FlagKind.VERDICT, REASON)
    assert version("2.0.0").quarantined_at is None

    flag(strict, "hello-skill", FlagKind.KNOWN_BAD, "It is known to be bad.", version="2.0.0")
    assert version("2.0.0").quarantined_at is not None
    assert (entry().latest_version, entry().flag_reason) == ("1.0.0", "")
    clear(strict, "hello-skill", FlagKind.KNOWN_BAD, version="2.0.0")
    assert version("2.0.0").quarantined_at is not None
    clear(strict, "hello-skill", FlagKind.VERDICT, version="2.0.0")
    assert version("2.0.0").quarantined_at is None
    assert entry().latest_version == "2.0.0"


def test_the_quarantine_of_an_operator_outlives_the_flag(env: WorkerEnv) -> None:
    publish_example(env, declared_version="1.0.0")
    quarantine_version(env, "hello-skill", "1.0.0", actor="ada", reason="seen")
    strict = quarantining(env, "known_bad")
    flag(strict, "hello-skill", FlagKind.KNOWN_BAD, REASON)
    clear(strict, "hello-skill", FlagKind.KNOWN_BAD)
    assert version().quarantine_reason == "seen"
    assert version().quarantined_at is not None


def updates(client: Client, number: str) -> dict[str, Any]:
    asked = {"skills": [{"name": "hello-skill", "currentVersion": number}]}
    answer = client.post("/api/v1/skills/check-updates", asked, content_type="application/json")
    found: dict[str, Any] = answer.json()["results"][0]
    return found


def test_every_form_tells_of_a_flag(client: Client, env: WorkerEnv) -> None:
    publish_example(env, declared_version="1.0.0")
    assert "flagged" not in updates(client, "1.0.0")
    assert "X-Vskill-Flagged" not in client.get("/api/v1/download?slug=hello-skill").headers
    flag(env, "hello-skill", FlagKind.VERDICT, REASON)

    skill = client.get("/api/v1/skills/hello-skill").json()
    assert SAID in skill["skill"]["flagReason"]
    assert SAID in skill["skill"]["summary"]
    assert (skill["skill"]["isSuspicious"], skill["skill"]["isTainted"], skill["skill"]["trustTier"]) == (
        True,
        True,
        "T0",
    )
    assert skill["moderation"]["verdict"] == "suspicious"
    assert SAID in skill["moderation"]["summary"]
    assert SAID in skill["latestVersion"]["changelog"]
    [listed] = client.get("/api/v1/skills").json()["items"]
    assert SAID in listed["summary"]
    [found] = client.get("/api/v1/search?q=hello").json()["results"]
    assert SAID in found["summary"]
    verified = client.get("/api/v1/skills/hello-skill/verify").json()
    assert (verified["ok"], SAID in verified["reasons"][0]) == (False, True)
    told = updates(client, "1.0.0")
    assert (told["flagged"], told["certTier"]) == (True, "")
    assert SAID in told["diffSummary"]
    download = client.get("/api/v1/download?slug=hello-skill&version=1.0.0")
    assert download.status_code == 200
    assert SAID in download.headers["X-Vskill-Flagged"]
    assert SAID in download.headers["Warning"]
    assert client.get("/acme/.well-known/agent-skills/index.json").json()["skills"] == []
    [indexed] = client.get("/skills/hello-skill/.well-known/agent-skills/index.json").json()["skills"]
    assert SAID in indexed["description"]
    assert client.get("/api/v1/blocklist/check?name=hello-skill").json()["tainted"] is True


def test_pages_and_lists_show_a_flag_until_it_is_cleared(client: Client, env: WorkerEnv) -> None:
    publish_example(env, declared_version="1.0.0")
    flag(env, "hello-skill", FlagKind.VERDICT, REASON)
    addresses = ("/", "/skills", "/skills?view=table", "/publishers/acme", "/skills/hello-skill")
    for address in addresses:
        assert "Flagged after publication" in client.get(address).content.decode(), address
    for address in ("/skills/hello-skill", "/skills/hello-skill/scan"):
        assert SAID in client.get(address).content.decode(), address

    clear(env, "hello-skill", FlagKind.VERDICT)
    for address in addresses:
        assert "Flagged after publication" not in client.get(address).content.decode(), address


def test_an_operator_takes_a_flag_off_with_a_reason(admin_client: Client, env: WorkerEnv) -> None:
    publish_example(env, declared_version="1.0.0")
    flag(env, "hello-skill", FlagKind.VERDICT, REASON)
    [found] = SkillFlag.objects.all()
    assert SAID in admin_client.get("/admin/marketplace/skillflag/").content.decode()
    assert admin_client.get(f"/admin/marketplace/skillflag/{found.pk}/change/").status_code == 200
    page = f"/admin/marketplace/skillflag/operate/clear/?ids={found.pk}"
    assert "hello-skill" in admin_client.get(page).content.decode()

    admin_client.post(page, {"ids": found.pk, "reason": ""})
    assert SkillFlag.objects.exists()
    admin_client.post(page, {"ids": found.pk, "reason": "read it: harmless"})
    skill = find_skill_sync(env, "hello-skill")
    assert skill is not None
    assert skill.flag_reason == ""
    event = HistoryEvent.objects.get(action="flag cleared: verdict")
    assert (event.actor, event.reason) == ("admin", "read it: harmless")
