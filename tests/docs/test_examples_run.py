"""Examples of the documents that can be run are run."""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client, override_settings

from submissions.states import State
from tests.docs.examples import Command, bare, blocks, commands, section
from tests.docs.production import read
from tests.end_to_end.processes import ROOT, instance
from tests.git_factory import make_repository, skill_md

EXAMPLE_REPOSITORY: Final = "https://github.com/owner/repository"
# Management commands that are only parsed, by a word of theirs, each with the reason.
NOT_RUN: Final = {
    "up": "runs until it is stopped",
    "consume": "runs until it is stopped",
    "schedule": "runs until it is stopped",
    "createsuperuser": "asks questions",
    "follow": "the example of blocking blocks its repository; tests/submissions/following runs it",
    "unfollow": "ends what the one above begins",
    "signing_key": "writes below /etc; tests/marketplace/provenance makes keys elsewhere",
    "verify_version": "names a version that has to be published; tests/marketplace/provenance verifies some",
    "audience": "names a skill that has to be published; tests/vskill/accounts shows one to a team",
    "transfer": "names skills that have to be published; tests/submissions/claiming hands some over",
    "semgrep_scanner": "runs until it is stopped; tests/submissions/external_scans starts it",
    "--skill": "names a skill that has to be published",
    "--skills": "writes many; tests/end_to_end/test_many_skills writes fewer",
    "evaluate": "measures a corpus, which tests/submissions/commands builds",
    "test": "sends over the network; tests/submissions/notifications sends to a receiver of its own",
    "redeliver": "names a delivery that has to be there; tests/submissions/notifications repeats some",
    "PATH": "stands for a folder",
    "FILE": "stands for a file",
    "REPORT": "stands for a file",
    "JOB": "stands for the id of a job",
    "migrate": "has tables of its own to make, in the tests below and in test_restore",
    "--write": "writes documents, which other tests compare",
    "sub_...": "stands for the id of a submission",
}
# Commands that are named in running text without the arguments that they need.
NAMED_ALONE: Final = tuple(
    f"manage.py {name}" for name in ("block", "claim", "job", "known_bad", "scan", "team", "token", "webhook")
)


@pytest.fixture
def github(tmp_path: Path) -> Iterator[None]:
    """Serve the environment of the test with a folder of this machine in place of GitHub."""
    (tmp_path / "owner").mkdir()
    files = {"skills/one/SKILL.md": skill_md("one"), "skills/two/SKILL.md": skill_md("two")}
    make_repository(tmp_path / "owner" / "repository.git", files)
    policy = {"source_rewrites": [["https://github.com/", f"file://{tmp_path}/"]]}
    with override_settings(VSKILL_ENVIRONMENTS={"default": {"hosts": ["testserver"], "policy": policy}}):
        yield


def runnable() -> list[str]:
    """Return the management commands of all pages that can be run, each once; a bare name with subcommands cannot."""
    lines = dict.fromkeys(one.line for one in commands() if one.line.startswith("manage.py "))
    ends_by_itself = "manage.py consume --isolated"
    return [
        line for line in lines if line == ends_by_itself or not (NOT_RUN.keys() & line.split() or line in NAMED_ALONE)
    ]


# The pages name the first entry of a table, so numbers begin at 1 whatever tests ran before.
@pytest.mark.django_db(transaction=True, reset_sequences=True)
def test_management_commands_do_what_the_pages_say(github: None) -> None:
    get_user_model()._default_manager.create_user("ada")
    lines = runnable()
    assert len(lines) > 15
    for line in lines:
        _, name, *arguments = Command("", line.replace("URL", EXAMPLE_REPOSITORY)).words()
        said = io.StringIO()
        # A command that ends with another code than 0 raises.
        call_command(name, *arguments, stdout=said, stderr=io.StringIO())
        if name == "submit":
            assert "one" in said.getvalue(), line


@pytest.mark.django_db(transaction=True)
def test_curl_is_answered(github: None) -> None:
    sent = [one.words() for one in commands() if one.line.startswith("curl ")]
    assert len(sent) > 1
    answers = {}
    for words in sent:
        path = urlsplit(words[-1]).path
        if "-d" in words:
            # The content type that curl names by itself.
            body = words[words.index("-d") + 1]
            answer = Client().post(path, body, content_type="application/x-www-form-urlencoded")
        else:
            answer = Client().get(path)
        answers[path] = (answer.status_code, answer.json())
    status, accepted = answers["/api/v1/submissions"]
    assert status == 202
    assert {one["state"] for one in accepted["submissions"]} == {State.RECEIVED}
    # No consumer and no scheduler in a test.
    status, health = answers["/healthz"]
    assert (status, health["dead"]) == (503, ["consumer", "scheduler"])


def test_the_first_lines_of_the_readme(tmp_path: Path) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, so it cannot be cloned")
    [block] = section("README.md", "vskill", "Start")
    *lines, run = block.lines()
    assert run == "make run"
    script = "\n".join([*lines, "make --dry-run run", "make help"]).replace("ADDRESS", str(ROOT))
    done = subprocess.run(["bash", "-ec", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "manage.py up" in done.stdout


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_an_environment_with_its_own_database(tmp_path: Path) -> None:
    page = "docs/environments.md"
    [environments, _secrets] = [one for one in blocks(ROOT / page) if one.language == "json"]
    [migrate] = [one.line for one in commands() if one.place.startswith(page) and "migrate" in one.line]
    own = json.dumps({"internal": f"sqlite:///{tmp_path}/internal.sqlite3"})
    with instance(tmp_path / "data", VSKILL_ENVIRONMENTS=environments.text, VSKILL_DATABASES=own) as made:
        made.manage(*Command("", migrate).words()[1:])
        assert made.manage("queue_status").splitlines() == [
            "public: 0 waiting, 0 delayed, 0 in work, 0 parked; 0 consumers",
            "internal: 0 waiting, 0 delayed, 0 in work, 0 parked; 0 consumers",
        ]


@pytest.mark.django_db(transaction=True)
def test_commands_of_cron_are_silent_where_there_is_nothing_to_say(capfd: pytest.CaptureFixture[str]) -> None:
    for line in read("vskill.cron").splitlines():
        if not line.startswith("#"):
            call_command(*bare(line.partition(" && ")[2]).split()[1:])
    assert capfd.readouterr() == ("", "")
