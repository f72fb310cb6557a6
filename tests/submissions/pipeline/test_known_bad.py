"""Known bad content on its way through the pipeline, with real repositories: refused, held, undone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import override_settings

from marketplace.known_bad.entries import forget
from marketplace.models import KnownBad, SkillVersion
from submissions.operations import approve, refuse_as_known_bad, requeue
from submissions.states import State
from submissions.store.records import Submission
from tests.git_factory import skill_md
from tests.submissions.front_door import EVIL, repository, submitted_one, worked_off
from vskill.environments import WorkerEnv, get_environment
from vskill.kv.threads import writers

pytestmark = pytest.mark.django_db(transaction=True)
BODY = EVIL + " ".join(f"word{number}" for number in range(400)) + "\n\nThen see scripts/take.sh.\n"
FILES = {"one/SKILL.md": BODY, "one/scripts/take.sh": "#!/bin/sh\nset -e\necho done\n"}

HONEST = "---\nname: three\ndescription: Says much.\n---\n" + BODY.partition("```\n")[2] + "And a line more.\n"


async def submission(env: WorkerEnv, folder: Path, files: dict[str, str], name: str) -> Submission:
    return await worked_off(env, await submitted_one(env, repository(folder, files, name)))


async def remembered(env: WorkerEnv, folder: Path) -> Submission:
    held = await submission(env, folder, FILES, "first")
    assert held.state is State.ON_HOLD
    return await writers.run(refuse_as_known_bad, env, held.id, actor="ada", reason="It takes keys.")


def renamed() -> dict[str, str]:
    body = BODY.replace("key-helper", "other-name").replace("scripts/take.sh", "bin/give.sh").replace("\n", "\r\n")
    return {"deep/two/SKILL.md": body, "deep/two/bin/give.sh": "#!/bin/sh\n\nset  -e\necho DONE\n"}


async def test_the_same_content_under_other_names_is_refused_and_can_be_submitted_once_it_is_forgotten(
    env: WorkerEnv, tmp_path: Path
) -> None:
    first = await remembered(env, tmp_path)
    assert first.state is State.REJECTED
    again = await submission(env, tmp_path, renamed(), "second")

    assert (again.state, again.text("verdict")) == (State.REJECTED, "refused")
    assert again.text("contentHash") != first.text("contentHash")
    assert "It takes keys." in again.text("reason")
    entry = await KnownBad.objects.aget()
    await writers.run(forget, env, entry.pk, actor="ada", reason="A mistake.")
    await writers.run(requeue, env, again.id, actor="ada", reason="again")
    assert (await worked_off(env, again)).state is State.ON_HOLD


async def test_similar_content_is_held_with_the_name_of_the_entry_and_the_similarity(
    env: WorkerEnv, tmp_path: Path
) -> None:
    await remembered(env, tmp_path)
    honest = {"three/SKILL.md": HONEST}
    near = await submission(env, tmp_path, honest, "third")

    assert near.state is State.ON_HOLD
    assert any("like known bad content: key-helper" in one for one in near.value["decision"]["reasons"])
    other = {"four/SKILL.md": skill_md("four", "Says little.")}
    assert (await submission(env, tmp_path, other, "fourth")).state is State.PUBLISHED
    await writers.run(approve, env, near.id, actor="ada", reason="The honest part of it.")
    assert (await worked_off(env, near)).state is State.PUBLISHED


async def test_trust_in_an_owner_lets_neither_through(env: WorkerEnv, tmp_path: Path) -> None:
    await remembered(env, tmp_path)
    policy = {"source_file_roots": ["/"], "trusted_owners": [f"/{tmp_path.name}"], "scan_trusted_owners": False}
    with override_settings(VSKILL_ENVIRONMENTS={"default": {"hosts": ["testserver"], "policy": policy}}):
        trusting = get_environment("default")
        equal = await submission(trusting, tmp_path, renamed(), "second")
        near = {"three/SKILL.md": HONEST}
        similar = await submission(trusting, tmp_path, near, "third")
    assert equal.state is State.REJECTED
    assert similar.state is State.ON_HOLD


def test_a_folder_and_a_list_are_remembered_listed_and_forgotten_by_command(
    env: WorkerEnv, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "thief"
    folder.mkdir()
    (folder / "SKILL.md").write_text(BODY)

    def said(*arguments: str) -> str:
        call_command("known_bad", *arguments)
        return capsys.readouterr().out

    planned = json.loads(said("add", str(folder), "--reason", "It takes keys.", "--dry-run", "--json"))
    assert (planned["dryRun"], planned["result"]) == (True, "added")
    assert not KnownBad.objects.exists()
    assert "key-helper: added" in said("add", str(folder), "--reason", "It takes keys.")
    exported = said("list", "--json")
    number = json.loads(exported)["entries"][0]["id"]
    said("remove", str(number), "--reason", "moved")
    assert "no content is known to be bad" in said("list")
    with pytest.raises(CommandError):
        said("remove", str(number), "--reason", "moved")

    file = tmp_path / "list.json"
    file.write_text(exported)
    assert "1 would be added" in said("import", str(file), "--dry-run")
    assert not KnownBad.objects.exists()
    assert "1 added, 0 known already" in said("import", str(file))
    assert "0 added, 1 known already" in said("import", str(file))
    assert "similar too" in said("list")

    file.write_text(f"name,reason,contentHash\ngood,Seen.,{'ab' * 32}\nbad,Seen.,zz\n")
    with pytest.raises(SystemExit) as ended:
        said("import", str(file))
    assert ended.value.code == 1
    assert "line 2" in capsys.readouterr().out
    assert KnownBad.objects.filter(content_hash="ab" * 32).exists()
    with pytest.raises(CommandError, match="cannot be read as a list"):
        said("import", str(tmp_path / "no-such-file"))
    assert not SkillVersion.objects.exists()
