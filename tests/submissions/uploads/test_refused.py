"""What is no upload: each fault has its status and a text that the client prints, and nothing of it is kept."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.db import connections
from django.test import Client, override_settings
from django.utils import timezone

from marketplace.catalog import rename_skill
from marketplace.skills.blocklist import BlockKind, add_block
from submissions.models import QueueMessage, StagedFile, SubmissionEntry, UploadedBundle
from submissions.uploads import stored
from submissions.uploads.errors import UploadRefused
from tests.marketplace.factories import publish_example
from tests.submissions.front_door import drain
from tests.submissions.uploads.uploading import (
    BOUNDARY,
    FILES,
    SKILLS,
    named,
    payload,
    post_json,
    publish_form,
    publish_json,
    send_ahead,
    send_bytes,
    token_for,
)
from vskill.access_tokens.models import AccessToken
from vskill.access_tokens.scopes import Scope
from vskill.access_tokens.tokens import revoke
from vskill.accounts.roles import Role
from vskill.environments import WorkerEnv, get_environment
from vskill.models import RoleGrant

pytestmark = pytest.mark.django_db(transaction=True)

MIB = 1024 * 1024
SKILL_MD = FILES["SKILL.md"]


def written() -> tuple[int, ...]:
    return tuple(model.objects.count() for model in (SubmissionEntry, QueueMessage, UploadedBundle, StagedFile))


@pytest.fixture(autouse=True)
def _nothing_is_half_written() -> Iterator[None]:
    """Compare the number of submissions, of messages and of bundles, one for each, whatever a test does."""
    yield
    submissions, _messages, bundles, _staged = written()
    assert submissions == bundles


def said(answer: Any, status: int) -> str:
    """Return the text of a refusal, which has a status and the form that the client prints."""
    assert (answer.status_code, answer["Content-Type"]) == (status, "text/plain; charset=utf-8"), answer.content
    return str(answer.content.decode())


PATHS = {
    "climbs": "../evil.md",
    "climbs inside": "docs/../../evil.md",
    "absolute": "/etc/cron.d/evil",
    "backslash": "docs\\evil.md",
    "drive": "C:/evil.md",
    "NUL": "docs/a\0b.md",
    "new line": "docs/a\nb.md",
    "git's own": ".git/config",
    "a device": "NUL.txt",
    "empty": "",
    "here": "./SKILL2.md",
    "double slash": "docs//a.md",
    "too deep": "/".join("d" * 20) + "/a.md",
    "bidirectional": "docs/\u202egnp.md",
}


def test_a_path_that_no_skill_may_have_is_refused_in_every_form(env: WorkerEnv) -> None:
    token = token_for(env)
    for about, path in PATHS.items():
        text = said(post_json(token, f"{SKILLS}/-/upload-url", named(path, b"x")), 400)
        assert "is no path in a skill" in text, about
        listed = [named("SKILL.md", SKILL_MD), named(path, b"x")]
        assert "is no path in a skill" in said(post_json(token, SKILLS, payload(files=listed)), 400), about
        # A form cannot carry a line break or an empty name: such a part is no file, or another one.
        if path and not set(path) & {"\n", "\0"}:
            text = said(publish_form(token, [("SKILL.md", SKILL_MD), (path, b"x")]), 400)
            assert "is no path in a skill" in text, about
    assert written() == (0, 0, 0, 0)


def test_names_that_are_one_file_somewhere_are_refused(env: WorkerEnv) -> None:
    token = token_for(env)
    pairs = (("a.md", "a.md"), ("Read.md", "read.md"), ("docs", "docs/a.md"), ("caf\u00e9.md", "cafe\u0301.md"))
    for pair in pairs:
        files = [("SKILL.md", SKILL_MD), *((path, b"x") for path in pair)]
        assert "one file on some systems" in said(publish_form(token, files), 400)
        listed = [named(path, content) for path, content in files]
        assert "one file on some systems" in said(post_json(token, SKILLS, payload(files=listed)), 400)
    assert written() == (0, 0, 0, 0)


def test_what_is_too_large_or_too_much_is_refused(env: WorkerEnv) -> None:
    token = token_for(env)
    assert "larger than 10 MiB" in said(post_json(token, f"{SKILLS}/-/upload-url", named("a", b"", size=51 * MIB)), 413)
    big = [named("SKILL.md", SKILL_MD), *(named(f"{number}.bin", b"", size=10 * MIB) for number in range(5))]
    assert "more than 10 MiB together" in said(post_json(token, SKILLS, payload(files=big)), 413)
    together = [("SKILL.md", SKILL_MD), *((f"{number}.bin", bytes(4 * MIB)) for number in range(3))]
    assert "more than 10 MiB together" in said(publish_form(token, together), 413)
    many = [("SKILL.md", SKILL_MD), *((f"{number}.txt", b"x") for number in range(10_000))]
    assert "501 files" in said(publish_form(token, many[:501]), 413)
    assert "more parts than a skill" in said(publish_form(token, many), 413)
    listed = [named(path, content) for path, content in many]
    assert "413" in str(post_json(token, SKILLS, payload(files=listed)).status_code)
    assert "10,001 files" in said(
        post_json(token, SKILLS, payload(files=[{**one, "sha256": ""} for one in listed])), 413
    )
    assert written() == (0, 0, 0, 0)


def test_a_client_that_lies_about_size_or_digest_is_refused(env: WorkerEnv) -> None:
    token = token_for(env)
    for lie in (named("a.txt", b"other"), named("a.txt", b"longer than that"), named("a.txt", b"")):
        address = post_json(token, f"{SKILLS}/-/upload-url", lie).json()["uploadUrl"]
        assert "not the bytes that were announced" in said(send_bytes(token, address, b"short"), 400)
    for lie in ({"sha256": "xyz"}, {"sha256": "A" * 64}):
        assert "64 digits" in said(post_json(token, f"{SKILLS}/-/upload-url", named("a.txt", b"x", **lie)), 400)
    for lie in ({"size": -1}, {"size": True}, {"size": "1"}, {"path": 7}, {"sha256": None}):
        assert post_json(token, f"{SKILLS}/-/upload-url", {**named("a.txt", b"x"), **lie}).status_code in (400, 413)
    sent = [send_ahead(token, path, content) for path, content in FILES.items()]
    for lie in (named("new.txt", b"never sent"), {**sent[0], "path": "other.md", "size": 1}):
        text = said(post_json(token, SKILLS, payload(files=[*sent, lie])), 400)
        assert "was not uploaded with this digest and size" in text
    assert written() == (0, 0, 0, len(FILES))


def test_an_address_for_a_file_is_good_for_its_account_and_registry_alone(env: WorkerEnv) -> None:
    ada, eve = token_for(env), token_for(env, "eve")
    address = post_json(ada, f"{SKILLS}/-/upload-url", named("a.txt", b"x")).json()["uploadUrl"]
    assert "made for another account" in said(send_bytes(eve, address, b"x"), 403)
    assert "wrong or older" in said(send_bytes(ada, f"{address}x", b"x"), 403)
    assert said(send_bytes(None, address, b"x"), 401)
    send_ahead(ada, "SKILL.md", SKILL_MD)
    text = said(post_json(eve, SKILLS, payload(files=[named("SKILL.md", SKILL_MD)])), 400)
    assert "was not uploaded" in text


def test_a_slug_of_somebody_else_is_refused_also_a_former_and_a_withheld_one(env: WorkerEnv) -> None:
    publish_example(env, name="pdf-tools")
    token = token_for(env)
    assert "belongs to @acme. Choose another one with --slug" in said(publish_form(token), 409)
    rename_skill(env, "pdf-tools", "pdf-kit", actor="test", reason="test")
    assert "belongs to @acme" in said(publish_json(token), 409)
    async_to_sync(drain)(env)
    assert publish_form(token, slug="ada-pdf").status_code == 202


def test_a_slug_or_a_version_that_is_none_is_refused(env: WorkerEnv) -> None:
    token = token_for(env)
    slugs: list[object] = ["", "PDF", "pdf_tools", "-", "search", "a--b", "x" * 65, "../a", "a\0b", 7, ["a"]]
    for slug in slugs:
        assert publish_form(token, slug=slug).status_code == 400, slug
    versions: list[object] = ["", "one", "1.0.0+build", "1..0", "1.0.0\0", 1, "9" * 400]
    for version in versions:
        assert publish_form(token, version=version).status_code == 400, version
    assert written() == (0, 0, 0, 0)


def test_nobody_publishes_as_somebody_else(env: WorkerEnv) -> None:
    token = token_for(env)
    for owner in ("acme", "@eve", "ada.account2"):
        assert "publishes as @ada and" in said(publish_form(token, ownerHandle=owner), 403)
    assert "another owner" in said(publish_form(token, migrateOwner=True), 400)
    assert "only tag here is latest" in said(publish_form(token, tags=["beta"]), 400)
    assert written() == (0, 0, 0, 0)
    for owner in ("@ada", "ada.account", "ada--account", "ADA"):
        assert publish_form(token, ownerHandle=owner).status_code == 202


def test_a_version_never_changes_and_the_same_files_are_one_version(env: WorkerEnv) -> None:
    token = token_for(env)
    publish_form(token)
    changed = {**FILES, "new.txt": b"new"}
    assert "one version of a skill is checked at a time" in said(publish_form(token, changed), 409)
    async_to_sync(drain)(env)
    assert "exists already with other files" in said(publish_form(token, changed), 409)
    assert "These files are pdf-tools 1.0.0 already" in said(publish_form(token, version="1.0.1"), 409)


BROKEN = {
    "no SKILL.md": {"README.md": b"x"},
    "only below": {"skill/SKILL.md": SKILL_MD},
    "no frontmatter": {"SKILL.md": b"Just text."},
    "not UTF-8": {"SKILL.md": b"---\nname: a\ndescription: \xff\xfe\n---\n"},
    "nothing": {},
}


def test_what_is_no_skill_goes_back_to_its_author(env: WorkerEnv) -> None:
    token = token_for(env)
    for about, files in BROKEN.items():
        answer = publish_form(token, files)
        assert answer.status_code in (400, 422), about
        assert b"Nothing was kept" in answer.content, about
    assert written() == (0, 0, 0, 0)


BODIES: dict[str, Callable[[str], Any]] = {
    "no JSON": lambda token: post_json(token, SKILLS, "{"),
    "a list": lambda token: post_json(token, SKILLS, "[]"),
    "no files": lambda token: post_json(token, SKILLS, payload()),
    "files are no list": lambda token: post_json(token, SKILLS, payload(files="all")),
    "a file is none": lambda token: post_json(token, SKILLS, payload(files=[7])),
    "deep": lambda token: post_json(token, SKILLS, "[" * 100_000),
    "payload is none": lambda token: publish_form(token, said="{"),
    "payload is a list": lambda token: publish_form(token, said="[]"),
    "no boundary": lambda token: Client().post(
        SKILLS, b"x", content_type="multipart/form-data", headers={"Authorization": f"Bearer {token}"}
    ),
    "cut off": lambda token: Client().post(
        SKILLS,
        b"--" + BOUNDARY.encode() + b"\r\nContent-Disposition: form-data",
        content_type=f"multipart/form-data; boundary={BOUNDARY}",
        headers={"Authorization": f"Bearer {token}"},
    ),
}


def test_a_body_that_nobody_can_mean_is_refused(env: WorkerEnv) -> None:
    token = token_for(env)
    for ask in BODIES.values():
        assert said(ask(token), 400)
    assert written() == (0, 0, 0, 0)


def test_only_a_valid_token_for_publish_opens_it(env: WorkerEnv) -> None:
    assert "clawhub login --token" in said(publish_form(None), 401)
    assert "this needs one for publish" in said(publish_form(token_for(env, "ada", Scope.SUBMIT, Scope.OPERATE)), 403)
    assert "no such token" in said(publish_form("vsk_nonsense"), 401)
    token = token_for(env)
    user = get_user_model()._default_manager.get(username="ada")
    session = Client()
    session.force_login(user)
    assert session.post(SKILLS, payload(), content_type="application/json").status_code == 401
    AccessToken.objects.filter(user=user).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert "expired" in said(publish_form(token), 401)
    token = token_for(env)
    revoke(AccessToken.objects.latest("pk"), actor="ada", reason="lost")
    assert "was revoked" in said(publish_form(token), 401)
    user.is_active = False
    user.save()
    assert written() == (0, 0, 0, 0)


def test_the_rule_of_access_holds_for_uploads(env: WorkerEnv) -> None:
    for access in ("read-only", "closed"):
        options = {"hosts": ["testserver"], "policy": {"access": access}}
        with override_settings(VSKILL_ENVIRONMENTS={"default": options}):
            token = token_for(get_environment("default"), access)
            assert "has no role" in said(publish_form(token, slug=access), 403)
            user = get_user_model()._default_manager.get(username=access)
            grant = RoleGrant.objects.create(
                user=user, environment="default", role=Role.VIEWER, granted_by="root", granted_at=timezone.now()
            )
            assert "has no role" in said(publish_form(token, slug=access), 403)
            assert publish_form(None).status_code == 401
            grant.role = Role.SUBMITTER
            grant.save()
            assert publish_form(token, slug=access).status_code == 202
            reading = token_for(get_environment("default"), access, Scope.SUBMIT)
            assert "one for publish" in said(publish_form(reading, slug=access), 403)


def test_an_account_on_the_block_list_uploads_nothing(env: WorkerEnv) -> None:
    add_block(env, BlockKind.OWNER, "account/ada", actor="root", reason="spam")
    assert "spam" in said(publish_form(token_for(env)), 403)
    assert written() == (0, 0, 0, 0)
    assert publish_form(token_for(env, "eve")).status_code == 202


def test_an_account_has_its_own_limits_wherever_it_is(env: WorkerEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"submissions": "2/minute", "reads": "", "downloads": "", "logins": "", "uploads": "3/minute"}
    ada, eve = token_for(env), token_for(env, "eve")

    def from_(address: str, token: str, path: str) -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        return Client(REMOTE_ADDR=address).post(path, "{}", content_type="application/json", headers=headers)

    with override_settings(RATE_LIMITS=limits):
        for path, most in ((SKILLS, 2), (f"{SKILLS}/-/upload-url", 3)):
            answers = [from_(f"198.51.100.{number}", ada, path) for number in range(1, most + 2)]
            assert [one.status_code for one in answers] == [400] * most + [429]
            assert "Retry-After" in answers[-1].headers
            assert from_("198.51.100.99", eve, path).status_code == 400

    monkeypatch.setattr(stored, "MOST_BYTES_A_DAY", 6000)
    assert "a day here" in said(publish_form(ada, {**FILES, "big.txt": bytes(6000)}), 429)
    assert publish_form(ada).status_code == 202
    # Small as it is: the disk gives it a block.
    address = post_json(ada, f"{SKILLS}/-/upload-url", named("a.txt", b"a")).json()["uploadUrl"]
    assert "a day here" in said(send_bytes(ada, address, b"a"), 429)
    assert written() == (1, 1, 1, 0)


def test_files_that_are_sent_at_once_have_the_limit_of_a_day_together(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "MOST_BYTES_A_DAY", 5000)
    start, kept = threading.Barrier(4), []

    def send(content: bytes) -> None:
        try:
            start.wait()
            kept.append(stored.stage(env, 7, content))
        except UploadRefused:
            pass
        finally:
            connections.close_all()

    threads = [threading.Thread(target=send, args=[bytes([number])]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(kept) == 1
    assert StagedFile.objects.count() == 1


@pytest.mark.parametrize("text", ['{"path": "\\ud800"}', '{"\\udfff": 1}', '{"slug": "pdf\\ud83d", "files": []}'])
def test_half_a_character_is_refused_in_words(env: WorkerEnv, text: str) -> None:
    headers = {"Authorization": f"Bearer {token_for(env)}"}
    for path in (SKILLS, f"{SKILLS}/-/upload-url"):
        answer = Client().post(path, text, content_type="application/json", headers=headers)
        assert "no Unicode" in said(answer, 400)
    assert written() == (0, 0, 0, 0)


def test_other_methods_are_refused_and_nothing_else_reads_a_body(env: WorkerEnv) -> None:
    client = Client()
    assert client.options(SKILLS)["Allow"] == "GET, HEAD, POST, OPTIONS"
    assert client.put(SKILLS).status_code == 405
    assert client.get(f"{SKILLS}/-/upload-url").status_code == 405
    assert client.get(SKILLS).json()["items"] == []
