"""Archives and files over HTTP, indexes for discovery, and the dialects of skills and vskill."""

from __future__ import annotations

import base64
import hashlib
from typing import Any
from urllib.parse import unquote, urlencode

import pytest
from django.test import Client

from marketplace.catalog import find_skill_sync, quarantine_skill, yank_version
from marketplace.models.derived import CountedClient, DownloadDay
from marketplace.skills.blocklist import BlockKind, add_block
from tests.marketplace.factories import publish_example
from vskill.environments import WorkerEnv
from vskill.kv.threads import close_database_threads

pytestmark = pytest.mark.django_db(transaction=True)
INDEX = ".well-known/agent-skills/index.json"


def get(client: Client, address: str) -> dict[str, Any]:
    answer = client.get(address)
    assert answer.status_code == 200, answer.content
    body: dict[str, Any] = answer.json()
    return body


def downloads(env: WorkerEnv) -> int:
    """Wait for downloads that are being counted, and return how many were."""
    close_database_threads()
    skill = find_skill_sync(env, "hello-skill")
    assert skill is not None
    return int(skill.downloads)


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_an_archive_comes_with_its_digest_and_may_be_kept(client: Client, env: WorkerEnv, kind: str) -> None:
    publish_example(env)
    answer = client.get(f"/skills/hello-skill/download/0.0.1.{kind}")
    digest = hashlib.sha256(answer.content)

    assert answer.headers["ETag"] == f'"{digest.hexdigest()}"'
    assert answer.headers["Repr-Digest"] == f"sha-256=:{base64.b64encode(digest.digest()).decode()}:"
    assert answer.headers["X-Checksum-SHA256"] == digest.hexdigest()
    assert "immutable" in answer.headers["Cache-Control"]
    assert answer.headers["Content-Disposition"] == f'attachment; filename="hello-skill-0.0.1.{kind}"'
    assert answer.headers["Access-Control-Allow-Origin"] == "*"


def test_the_latest_archive_is_asked_for_anew_each_time(client: Client, env: WorkerEnv) -> None:
    publish_example(env)
    answer = client.get("/skills/hello-skill/download/latest.zip")
    assert answer.headers["Cache-Control"] == "no-cache"
    unchanged = client.get("/skills/hello-skill/download/latest.zip", headers={"If-None-Match": answer.headers["ETag"]})
    assert (unchanged.status_code, unchanged.content) == (304, b"")


def test_downloads_are_counted_and_nothing_else_is(client: Client, env: WorkerEnv) -> None:
    publish_example(env)
    address = "/skills/hello-skill/download/0.0.1.zip"
    client.head(address)
    client.get(address, headers={"X-Skills-Update-Check": "1"})
    client.get(address, headers={"Range": "bytes=0-1"})
    client.get("/skills/hello-skill/download/9.9.9.zip")
    assert downloads(env) == 0

    etag = client.get(address).headers["ETag"]
    client.get(address, headers={"If-None-Match": etag})
    assert downloads(env) == 1
    assert DownloadDay.objects.get().count == 1


def test_a_client_counts_once_a_day_for_a_version_by_whatever_address(client: Client, env: WorkerEnv) -> None:
    publish_example(env)
    for _ in range(2):
        client.get("/api/v1/download?slug=hello-skill")
        client.get("/skills/hello-skill/download/0.0.1.tar.gz")
    client.get("/api/v1/download?slug=hello-skill", REMOTE_ADDR="192.0.2.7")
    # One customer of a provider has all addresses of such a network.
    client.get("/api/v1/download?slug=hello-skill", REMOTE_ADDR="2001:db8::1")
    client.get("/api/v1/download?slug=hello-skill", REMOTE_ADDR="2001:db8::2")
    publish_example(env, files={"SKILL.md": "---\nname: hello-skill\ndescription: Newer.\n---\n"})
    client.get("/api/v1/download?slug=hello-skill")
    assert downloads(env) == 4
    assert sorted(DownloadDay.objects.values_list("count", flat=True)) == [1, 3]

    for told in CountedClient.objects.values_list("digest", flat=True):
        assert "192.0.2" not in told


def test_what_stands_in_a_list_is_not_counted_and_what_is_chosen_is(client: Client, env: WorkerEnv) -> None:
    publish_example(env)
    (alone,) = get(client, f"/publishers/acme/{INDEX}")["skills"]
    publish_example(env, name="other-skill")
    for one in get(client, f"/publishers/acme/{INDEX}")["skills"]:
        assert client.get(one["url"]).status_code == 200
    assert downloads(env) == 0
    assert client.get(alone["url"]).status_code == 200
    assert downloads(env) == 1


@pytest.mark.parametrize("name", ["0.0.1.rar", "0.0.1", ".zip", "latest", "%2e%2e.zip"])
def test_other_archives_do_not_exist(client: Client, env: WorkerEnv, name: str) -> None:
    publish_example(env)
    answer = client.get(f"/skills/hello-skill/download/{name}")
    assert answer.status_code == (200 if name == ".zip" else 404)


def test_a_reason_cannot_break_out_of_its_header(client: Client, env: WorkerEnv) -> None:
    publish_example(env)
    yank_version(env, "hello-skill", "0.0.1", actor="test", reason='broken"\r\nSet-Cookie: a=b\u2028é')
    answer = client.get("/skills/hello-skill/download/0.0.1.zip")
    said = "broken%22%0D%0ASet-Cookie: a=b%E2%80%A8%C3%A9"
    assert answer.headers["Warning"] == f'299 - "This version was yanked: {said}"'
    assert answer.headers["X-Vskill-Yanked"] == said
    assert "Set-Cookie" not in answer.headers


def test_a_reason_in_any_letters_arrives_in_its_header_and_never_fills_it(client: Client, env: WorkerEnv) -> None:
    publish_example(env)
    yank_version(env, "hello-skill", "0.0.1", actor="test", reason=f"Löscht 100 % der Dateien: {'あ' * 300}")
    said = client.get("/skills/hello-skill/download/0.0.1.zip").headers["X-Vskill-Yanked"]
    assert unquote(said).rstrip("あ") == "Löscht 100 % der Dateien: "
    assert 550 < len(said) <= 600


@pytest.mark.parametrize("address", ["skills/hello-skill", "acme/hello-skill", "acme@hello-skill"])
def test_a_skills_index_names_an_archive_that_has_its_digest(client: Client, env: WorkerEnv, address: str) -> None:
    publish_example(env)
    publish_example(env, name="another")
    answer = client.get(f"/{address}/{INDEX}")

    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    body = answer.json()
    assert body["$schema"] == "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
    [entry] = body["skills"]
    assert (entry["name"], entry["type"]) == ("hello-skill", "archive")
    archive = client.get(entry["url"])
    assert archive.headers["Content-Type"] == "application/gzip"
    assert entry["digest"] == f"sha256:{hashlib.sha256(archive.content).hexdigest()}"


def test_a_strangers_address_has_no_index(client: Client, env: WorkerEnv) -> None:
    publish_example(env)
    assert client.get(f"/mallory/hello-skill/{INDEX}").status_code == 404
    assert client.get(f"/mallory/{INDEX}").status_code == 404
    assert client.get(f"/skills/{INDEX}").status_code == 404


def test_the_index_at_the_root_is_empty(client: Client, env: WorkerEnv) -> None:
    publish_example(env)
    assert get(client, f"/{INDEX}")["skills"] == []


def test_find_answers_with_addresses_that_can_be_added(client: Client, env: WorkerEnv) -> None:
    publish_example(env)
    publish_example(env, name="hello-again", repo_url="https://github.com/mallory/x")

    found = get(client, "/api/search?q=hello&owner=acme")["skills"]
    assert found == [
        {"id": "acme/hello-skill", "name": "hello-skill", "source": f"{env.public_url}/acme", "installs": 0}
    ]


def test_vskill_finds_and_describes(client: Client, env: WorkerEnv) -> None:
    publish_example(env, declared_version="1.0.0")
    publish_example(env, name="hello-again")

    found = get(client, "/api/v1/skills/search?q=hello&limit=1")
    assert len(found["results"]) == 1
    assert found["pagination"] == {"hasMore": True}
    skill = get(client, "/api/v1/skills/acme/skills/hello-skill")["skill"]
    assert (skill["name"], skill["currentVersion"], skill["trustTier"]) == ("acme/skills/hello-skill", "1.0.0", "T2")
    assert skill["sha"] == hashlib.sha256(skill["content"].encode()).hexdigest()
    assert client.get("/api/v1/skills/acme/other/hello-skill").status_code == 404


def test_vskill_learns_of_updates(client: Client, env: WorkerEnv) -> None:
    publish_example(env, declared_version="1.10.0")
    asked = [
        {"name": "acme/skills/hello-skill", "currentVersion": "1.9.0"},
        {"name": "hello-skill", "currentVersion": "1.10.0"},
        {"name": "unknown", "currentVersion": "1"},
        {"name": ["odd"]},
        "odd",
    ]
    answer = client.post("/api/v1/skills/check-updates", {"skills": asked}, content_type="application/json")
    results = answer.json()["results"]

    assert [(one["name"], one["latest"], one["updateAvailable"]) for one in results] == [
        ("acme/skills/hello-skill", "1.10.0", True),
        ("hello-skill", "1.10.0", False),
        ("unknown", None, False),
        ("['odd']", None, False),
    ]


@pytest.mark.parametrize(
    "body", ["[]", "{", '"x"', '{"skills": 5}', "[" * 100_000, '{"skills": [' + "{}," * 500 + "{}]}"]
)
def test_a_body_that_is_none_is_refused(client: Client, body: str) -> None:
    answer = client.post("/api/v1/skills/check-updates", body, content_type="application/json")
    assert answer.status_code == 400


def test_vskill_compares_versions(client: Client, env: WorkerEnv) -> None:
    publish_example(env, files={"SKILL.md": "a\nb\n", "gone": "x", "image": b"\0\1"})
    publish_example(env, files={"SKILL.md": "a\nc\nd\n", "new": "y\n", "image": b"\0\2"})

    files = get(client, "/api/v1/skills/hello-skill/versions/compare?from=0.0.1&to=0.0.2")["files"]
    assert [(one["filename"], one["status"], one["additions"], one["deletions"]) for one in files] == [
        ("SKILL.md", "modified", 2, 1),
        ("gone", "removed", 0, 1),
        ("image", "modified", 0, 0),
        ("new", "added", 1, 0),
    ]
    diff = get(client, "/api/v1/skills/hello-skill/versions/diff?from=0.0.1&to=0.0.2")
    assert "-b\n+c\n+d" in diff["contentDiff"]
    assert client.get("/api/v1/skills/hello-skill/versions/diff?from=0.0.1&to=9").status_code == 404


def test_the_block_list_names_what_is_withheld(client: Client, env: WorkerEnv) -> None:
    publish_example(env)
    publish_example(env, name="fine")
    quarantine_skill(env, "hello-skill", actor="test", reason="internal words")
    add_block(env, BlockKind.CONTENT, "a" * 64, actor="test", reason="known malware")
    add_block(env, BlockKind.OWNER, "github.com/mallory", actor="test", reason="stolen keys")

    listed = get(client, "/api/v1/blocklist")
    assert listed["count"] == 2
    assert {one["skillName"] or one["contentHash"] for one in listed["entries"]} == {"hello-skill", "a" * 64}
    assert "internal words" not in str(listed)
    for query, blocked in (
        ("name=hello-skill", True),
        ("name=acme/skills/hello-skill", True),
        ("name=fine", False),
        ("name=hello-skill&repoUrl=https://github.com/other/repo", False),
        ("name=x&repoUrl=https://github.com/Mallory/anything", True),
        ("name=unknown", False),
        ("", False),
    ):
        body = get(client, f"/api/v1/blocklist/check?{query}")
        assert body["blocked"] is blocked, query
        assert ("entry" in body) is blocked
    assert client.get("/api/v1/blocklist/check?repoUrl=nonsense").status_code == 400


def test_an_install_report_is_taken_and_counts_nothing(client: Client, env: WorkerEnv) -> None:
    publish_example(env)
    for address in ("/api/v1/skills/installs", "/api/v1/skills/hello-skill/installs"):
        assert client.post(address, {"version": "1"}, content_type="application/json").json()["ok"] is True
    assert downloads(env) == 0


SEARCHES = pytest.mark.parametrize(
    ("address", "found"),
    [
        ("/api/search", "skills"),
        ("/api/v1/search", "results"),
        ("/api/v1/skills/search", "results"),
        ("/api/v1/skills", "items"),
    ],
)


@SEARCHES
def test_every_search_is_narrowed_down_by_each_filter(client: Client, env: WorkerEnv, address: str, found: str) -> None:
    said: dict[str, Any] = {"license": "Apache-2.0", "verdict": "notes", "capabilities": ("network",)}
    publish_example(env, name="wanted-words", metadata={"tags": "pdf"}, compatibility="Claude Code", **said)
    publish_example(env, name="other-words", repo_url="https://github.com/mallory/x", capabilities=("shell",))
    chosen = {
        "verdict": "notes",
        "capability": "network",
        "agent": "claude-code",
        "publisher": "acme",
        "owner": "acme",
        "license": "Apache-2.0",
        "tag": "pdf",
    }
    assert len(get(client, f"{address}?q=words")[found]) == 2
    for filters in (*({name: value} for name, value in chosen.items()), chosen):
        answer = get(client, f"{address}?{urlencode({'q': 'words', **filters})}")
        assert [(one.get("slug") or one["name"]).rpartition("/")[2] for one in answer[found]] == ["wanted-words"], (
            filters
        )
    assert get(client, f"{address}?q=words&tag=pdf&owner=mallory")[found] == []
    answer = get(client, f"{address}?q=words&tag=pdfs&owner=malory&license=none")
    assert (answer[found], answer["near"]) == ([], {"publisher": ["mallory"], "tag": ["pdf"]})
    assert get(client, f"{address}?q=words")["near"] == {}


@SEARCHES
def test_a_search_says_what_was_searched_for_where_no_skill_has_every_word(
    client: Client, env: WorkerEnv, address: str, found: str
) -> None:
    publish_example(env, name="extract-invoices", description="Totals of a year.")
    for query, loosened in {
        "extract": None,
        "kubernetes": None,
        "extrcat": {"words": ["extract"], "allButOne": False},
        "totals invoices kubernetes": {"words": ["totals", "invoices"], "allButOne": False},
    }.items():
        answer = get(client, f"{address}?q={query}")
        assert (answer["loosened"], answer["notSearched"]) == (loosened, [])
        assert len(answer[found]) == (query != "kubernetes")
    long = "extract invoices totals of a year extract-invoices acme skills Zzzzqq kubernetes zzzzqq"
    answer = get(client, f"{address}?q={long}")
    assert (len(answer[found]), answer["notSearched"]) == (1, ["zzzzqq", "kubernetes"])
