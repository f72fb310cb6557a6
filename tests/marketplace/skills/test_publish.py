"""What publishing writes, in one transaction, and what it refuses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from django.db import transaction

from marketplace.artifacts.archives import read_member
from marketplace.catalog import (
    PublicationBlocked,
    PublicationMismatch,
    find_skill_sync,
    find_version_sync,
    publish_skill,
    rename_skill,
)
from marketplace.models import ArchiveBlob, HistoryEvent, SkillEntry, SkillVersion
from marketplace.models.derived import SearchDocument, SkillFacet
from marketplace.skills.answers import search_sync
from marketplace.skills.blocklist import BlockKind, add_block
from tests.marketplace.factories import make_publication, publish_example
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db


def tables_are_empty() -> bool:
    models = (SkillEntry, SkillVersion, ArchiveBlob, SearchDocument, SkillFacet, HistoryEvent)
    return not any(model.objects.exists() for model in models)


def test_a_published_skill_is_found_in_the_same_moment(env: WorkerEnv) -> None:
    published = publish_example(
        env, name="pdf-tools", description="Merge and split documents", metadata={"tags": "PDF, office"}
    )

    assert (published.slug, published.version, published.created) == ("pdf-tools", "0.0.1", True)
    assert [hit.skill.slug for hit in search_sync(env, "split docum")] == ["pdf-tools"]
    skill = find_skill_sync(env, "pdf-tools")
    assert skill is not None
    assert skill.record.publisher == "github.com/acme"
    assert skill.record.publisher_handle == "acme"
    assert skill.tags == ("pdf", "office")
    assert skill.capabilities == ("shell",)
    assert HistoryEvent.objects.get().action == "published"


def test_a_version_keeps_its_files_and_its_evidence(env: WorkerEnv) -> None:
    finding = {"rule": "r1", "severity": "low", "file": "SKILL.md", "line": 3, "excerpt": "a\0b\ud800"}
    publish_example(env, findings=(finding,), verdict="notes")

    skill = find_skill_sync(env, "hello-skill")
    assert skill is not None
    version = find_version_sync(env, skill)
    assert version is not None
    assert version.findings == [finding]
    assert [file["path"] for file in version.manifest] == ["SKILL.md", "scripts/run.sh"]
    archive = bytes(ArchiveBlob.objects.get(sha256=version.zip_sha256).content)
    assert len(archive) == version.zip_size
    assert read_member(archive, "scripts/run.sh") == b"#!/bin/sh\necho hello\n"


def test_what_lists_and_terminals_show_hides_and_commands_nothing(env: WorkerEnv) -> None:
    publish_example(
        env,
        files={"SKILL.md": "---\nname: hello-skill\n---\n"},
        description="Two\nlines \x1b[31m \u202egnp.exe \U000e0041\0 and \ud800",
        license="MIT\x1b]0;x\x07",
        metadata={"author\x1b": "\u200bme", "tags": "zwj👩\u200d💻"},
    )

    version = SkillVersion.objects.get()
    assert version.description == "Two lines [U+001B][31m [U+202E]gnp.exe [U+E0041]\N{REPLACEMENT CHARACTER} and ?"
    assert version.license == "MIT[U+001B]]0;x[U+0007]"
    assert version.metadata == {"author[U+001B]": "[U+200B]me", "tags": "zwj👩\u200d💻"}
    assert SkillEntry.objects.get(slug="hello-skill").description == version.description


def test_the_same_submission_twice_is_once(env: WorkerEnv) -> None:
    publish_example(env, submission_id="sub_1")
    again = publish_example(env, submission_id="sub_1", body="Other words.")

    assert (again.version, again.created) == ("0.0.1", False)
    assert SkillVersion.objects.count() == HistoryEvent.objects.count() == 1


def test_the_same_content_by_another_submission_is_the_same_version(env: WorkerEnv) -> None:
    publish_example(env)
    again = publish_example(env)

    assert (again.version, again.created) == ("0.0.1", False)
    assert SkillVersion.objects.count() == 1


def test_other_content_of_the_same_skill_is_the_next_version_under_the_same_slug(env: WorkerEnv) -> None:
    publish_example(env)
    second = publish_example(
        env, name="renamed-inside", skill_path="skills/hello-skill", description="Now it does more."
    )

    assert (second.slug, second.version, second.created) == ("hello-skill", "0.0.2", True)
    assert [hit.skill.latest_version for hit in search_sync(env, "does more")] == ["0.0.2"]
    assert search_sync(env, "says") == []


def test_a_version_number_is_never_given_to_other_content(env: WorkerEnv) -> None:
    assert publish_example(env, declared_version="1.2.0").version == "1.2.0"
    assert publish_example(env, declared_version="v1.2", body="Changed.").version == "1.2.1"
    assert publish_example(env, body="Without a number.").version == "1.2.2"


def test_an_older_number_does_not_become_the_latest(env: WorkerEnv) -> None:
    publish_example(env, declared_version="2.0.0", description="The new one.")
    publish_example(env, declared_version="1.9.9", description="A fix of the old one.")

    skill = find_skill_sync(env, "hello-skill")
    assert skill is not None
    assert (skill.latest_version, skill.description) == ("2.0.0", "The new one.")


def test_a_strangers_skill_of_the_same_name_gets_a_longer_slug(env: WorkerEnv) -> None:
    slugs = [
        publish_example(env, repo_url=url).slug
        for url in (
            "https://github.com/acme/skills",
            "https://github.com/Mallory/skills",
            "https://github.com/mallory/more",
            "https://gitlab.com/mallory/more",
        )
    ]

    assert slugs[:3] == ["hello-skill", "mallory-hello-skill", "mallory-more-hello-skill"]
    assert len(set(slugs)) == 4
    assert SkillEntry.objects.get(slug="hello-skill").publisher == "github.com/acme"


def test_a_former_name_is_not_given_to_a_stranger(env: WorkerEnv) -> None:
    publish_example(env)
    rename_skill(env, "hello-skill", "greeter", actor="test", reason="clearer")

    assert publish_example(env, repo_url="https://github.com/mallory/skills").slug == "mallory-hello-skill"


def test_a_name_without_ascii_letters_gets_a_short_hash(env: WorkerEnv) -> None:
    first, second = (publish_example(env, name=name, skill_path=name).slug for name in ("中文技能", "日本語"))

    assert first.startswith("skill-")
    assert first != second


@pytest.mark.parametrize("change", ["content", "missing", "link", "pipe", "linked folder", "longer"])
def test_files_that_are_not_the_verified_ones_are_refused(env: WorkerEnv, tmp_path: Path, change: str) -> None:
    root = tmp_path / "skill"
    publication = make_publication(root)
    script = root / "scripts" / "run.sh"
    match change:
        case "content":
            script.write_bytes(b"#!/bin/sh\necho HELLO\n")
        case "missing":
            script.unlink()
        case "link":
            script.rename(tmp_path / "elsewhere")
            script.symlink_to(tmp_path / "elsewhere")
        case "pipe":
            script.unlink()
            os.mkfifo(script)
        case "linked folder":
            (root / "scripts").rename(tmp_path / "elsewhere")
            (root / "scripts").symlink_to(tmp_path / "elsewhere")
        case "longer":
            script.write_bytes(script.read_bytes() + b"rm -rf /\n")

    with pytest.raises(PublicationMismatch):
        publish_skill(env, publication)
    assert tables_are_empty()


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "a/../../b", "a\\b", "", "a//b", "a\nb"])
def test_a_path_that_leads_out_is_refused(env: WorkerEnv, tmp_path: Path, path: str) -> None:
    publication = make_publication(tmp_path)
    stray = type(publication.files[0])(path, 0, "0" * 64, False)

    with pytest.raises(PublicationMismatch):
        publish_skill(env, type(publication)(**{**vars(publication), "files": (*publication.files, stray)}))
    assert tables_are_empty()


def test_a_skill_without_skill_md_is_refused(env: WorkerEnv) -> None:
    with pytest.raises(PublicationMismatch):
        publish_example(env, files={"README.md": "Not a skill."})
    assert tables_are_empty()


@pytest.mark.parametrize(
    ("kind", "value"),
    [(BlockKind.REPO, "https://github.com/Acme/Skills.git"), (BlockKind.OWNER, "GitHub.com/Acme")],
)
def test_what_is_blocked_is_not_published(env: WorkerEnv, kind: BlockKind, value: str) -> None:
    add_block(env, kind, value, actor="test", reason="stolen keys")

    with pytest.raises(PublicationBlocked, match="stolen keys"):
        publish_example(env)
    assert not SkillEntry.objects.exists()


def test_a_blocked_content_is_not_published_by_anybody(env: WorkerEnv, tmp_path: Path) -> None:
    publication = make_publication(tmp_path)
    add_block(env, BlockKind.CONTENT, publication.content_hash, actor="test", reason="known malware")

    with pytest.raises(PublicationBlocked):
        publish_skill(env, publication)


def test_publishing_is_undone_with_the_callers_transaction(env: WorkerEnv) -> None:
    with transaction.atomic():
        publish_example(env)
        transaction.set_rollback(True)
    assert tables_are_empty()
