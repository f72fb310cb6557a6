"""What is no request of git is refused, and each answer is framed as its version of the protocol has it."""

from __future__ import annotations

import gzip
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django.fixtures import DjangoAssertNumQueries

from marketplace.catalog import yank_version
from marketplace.git.archive_trees import UnfitForGit, archive_tree_id
from marketplace.git.packets import MalformedRequest, Mark, packet, read_packets
from marketplace.git.protocol import Fetch, ListRefs, read_request
from marketplace.models import SkillVersion
from tests.marketplace.factories import publish_example, skill_md
from vskill.environments import WorkerEnv

ID = b"a" * 40
FLUSH, DELIMITER = Mark.FLUSH.value, Mark.DELIMITER.value
FETCH = packet(b"command=fetch\n") + DELIMITER


@pytest.mark.parametrize(
    "body",
    [
        b"",
        FLUSH,
        b"00",
        b"0003",
        b"0004",
        b"+005a",
        b"zzzzwant",
        b"ffff" + b"a" * 100,
        b"fff5" + b"a" * 0xFFF1,
        packet(b"command=push"),
        packet(b"push"),
        packet(b"want " + ID[:39]) + FLUSH,
        packet(b"want " + ID.upper()) + FLUSH,
        packet(b"have " + ID) + FLUSH,
        packet(b"command=ls-refs") + DELIMITER + packet(b"peeled") + FLUSH,
        FETCH + FLUSH,
        FETCH + packet(b"want") + FLUSH,
        FETCH + packet(b"want " + ID) + packet(b"filter blob:none") + packet(b"done") + FLUSH,
    ],
)
def test_what_is_no_request_is_refused(body: bytes) -> None:
    with pytest.raises(MalformedRequest):
        read_request(body)


def test_requests_are_read_in_both_versions() -> None:
    wanted = frozenset({bytes.fromhex(ID.decode())})
    assert list(read_packets(packet(b"0000") + FLUSH)) == [b"0000", Mark.FLUSH]
    listed = packet(b"command=ls-refs\n") + packet(b"agent=x") + DELIMITER + packet(b"peel\n")
    assert read_request(listed + packet(b"ref-prefix refs/tags/\n") + FLUSH) == ListRefs(("refs/tags/",))
    assert read_request(FETCH + packet(b"want " + ID) + packet(b"done") + FLUSH) == Fetch(2, wanted, True, False)
    first = packet(b"want " + ID + b" side-band-64k agent=x\n") + packet(b"deepen 1\n") + FLUSH
    opening = read_request(first)
    assert isinstance(opening, Fetch)
    assert (opening.sends_pack, opening.before_pack()) == (False, FLUSH)
    done = read_request(first + packet(b"done\n"))
    assert isinstance(done, Fetch)
    assert (done.sends_pack, done.before_pack()) == (True, FLUSH + b"0008NAK\n")
    bare = read_request(packet(b"want " + ID) + FLUSH + packet(b"done"))
    assert isinstance(bare, Fetch)
    assert list(bare.framed([b"PACK"])) == [b"0008NAK\n", b"PACK"]
    has = read_request(FETCH + packet(b"want " + ID) + packet(b"have " + ID) + packet(b"deepen 1") + FLUSH)
    assert isinstance(has, Fetch)
    # A client that has something is not asked for more: it gets all that it wants.
    assert has.before_pack().count(b"packfile") == has.before_pack().count(b"ready") == 1


@pytest.fixture
def published(env: WorkerEnv) -> None:
    """Publish a skill."""
    publish_example(env, declared_version="1.0.0", files={"SKILL.md": skill_md("hello-skill", "Hello."), "a": "same"})


def ask(client: Client, body: bytes, **headers: Any) -> Any:
    kind = headers.pop("content_type", "application/x-git-upload-pack-request")
    return client.post("/git/acme/hello-skill/git-upload-pack", body, content_type=kind, headers=headers)


@pytest.mark.django_db(transaction=True)
def test_a_request_that_cannot_be_answered_is_refused_in_words(client: Client, published: None) -> None:
    listed = packet(b"command=ls-refs\n") + FLUSH
    assert ask(client, gzip.compress(listed), **{"Content-Encoding": "gzip"}).status_code == 200
    broken = gzip.compress(listed)[:10] + b"\xff" * 20
    assert ask(client, broken, **{"Content-Encoding": "gzip"}).status_code == 400
    refused = {
        415: ask(client, listed, content_type="text/plain"),
        400: ask(client, listed, **{"Content-Encoding": "gzip"}),
        # A kilobyte that unpacks to a megabyte.
        413: ask(client, gzip.compress(packet(b"have " + ID) * 20_000), **{"Content-Encoding": "gzip"}),
        404: client.get("/git/acme/hello-skil/info/refs?service=git-upload-pack"),
        403: client.get("/git/acme/hello-skill/info/refs?service=git-receive-pack"),
        405: client.get("/git/acme/hello-skill/git-upload-pack"),
    }
    assert {status: answer.status_code for status, answer in refused.items()} == {status: status for status in refused}
    assert all(answer.headers["Content-Type"].startswith("text/plain") for answer in refused.values())
    assert "smart HTTP" in client.get("/git/acme/hello-skill.git/info/refs").content.decode()
    unknown = ask(client, FETCH + packet(b"want " + ID) + packet(b"done") + FLUSH)
    assert (unknown.status_code, unknown.content[4:8]) == (200, b"ERR ")
    others = client.get("/git/mallory/hello-skill/info/refs?service=git-upload-pack")
    assert others.status_code == 404


@pytest.mark.django_db(transaction=True)
def test_an_archive_that_git_would_change_is_read_once(
    env: WorkerEnv, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    files = {"SKILL.md": skill_md("unfit", "Hello."), "zz/.gitattributes": "* text\n"}
    publish_example(env, name="unfit", files=files)
    sha256 = SkillVersion.objects.get().zip_sha256
    for queries in (1, 0, 0):
        with django_assert_num_queries(queries), pytest.raises(UnfitForGit):
            archive_tree_id(env, sha256)


@pytest.mark.django_db(transaction=True)
def test_no_blob_or_tree_can_be_asked_for_and_a_pack_holds_only_what_is_wanted(
    client: Client, env: WorkerEnv, published: None, tmp_path: Path
) -> None:
    publish_example(
        env, declared_version="1.1.0", files={"SKILL.md": skill_md("hello-skill", "Hello."), "a": "same", "b": "later"}
    )
    listed = ask(client, packet(b"command=ls-refs\n") + FLUSH).content
    commits = {line.split(b" ")[1]: line.split(b" ")[0] for line in read_packets(listed) if isinstance(line, bytes)}
    old = commits[b"refs/tags/1.0.0"]

    def fetched(*wanted: bytes) -> bytes:
        lines = b"".join(packet(b"want " + one) for one in wanted)
        answer = ask(client, FETCH + lines + packet(b"done") + FLUSH)
        return b"".join(answer.streaming_content) if answer.streaming else answer.content

    def objects(answer: bytes) -> dict[str, str]:
        start = answer.removeprefix(packet(b"packfile\n"))
        pack = b""
        while start != FLUSH:
            length = int(start[:4], 16)
            assert start[4:5] == b"\x01"
            pack, start = pack + start[5:length], start[length:]
        subprocess.run(["git", "init", "-q", "--bare", str(tmp_path)], check=True)
        subprocess.run(["git", "-C", str(tmp_path), "index-pack", "--strict", "--stdin"], input=pack, check=True)
        shown = subprocess.run(
            ["git", "-C", str(tmp_path), "cat-file", "--batch-all-objects", "--batch-check"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        return {line.split()[0]: line.split()[1] for line in shown.splitlines()}

    first = objects(fetched(old))
    assert sum(kind == "commit" for kind in first.values()) == 1
    for known, kind in first.items():
        if kind != "commit":
            assert b"not our ref" in fetched(known.encode())
    yank_version(env, "hello-skill", "1.0.0", actor="test", reason="test")
    assert b"not our ref" in fetched(old)
    assert b"not our ref" in fetched(commits[b"HEAD"], old)
