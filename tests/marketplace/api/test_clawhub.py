"""The dialect of clawhub, field by field where its client is strict."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest
from django.test import Client

from marketplace.artifacts.fingerprints import fingerprint
from marketplace.catalog import yank_version
from tests.marketplace.factories import publish_example
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)


def get(client: Client, address: str) -> dict[str, Any]:
    answer = client.get(address)
    assert answer.status_code == 200, answer.content
    body: dict[str, Any] = answer.json()
    return body


def test_the_site_says_where_its_api_is(client: Client, env: WorkerEnv) -> None:
    assert get(client, "/.well-known/clawhub.json")["apiBase"] == env.public_url
    assert get(client, "/.well-known/clawdhub.json") == get(client, "/.well-known/clawhub.json")


def test_search_scores_what_it_finds(client: Client, env: WorkerEnv) -> None:
    publish_example(env, name="pdf-tools", description="Merges documents")
    publish_example(env, name="merger", description="Joins things, pdf too")

    results = get(client, "/api/v1/search?q=pdf")["results"]

    assert [one["slug"] for one in results] == ["pdf-tools", "merger"]
    assert 0 < results[1]["score"] < results[0]["score"] <= 1
    assert isinstance(results[0]["updatedAt"], int)
    assert results[0]["ownerHandle"] == "acme"


def test_an_exact_search_finds_only_that_slug(client: Client, env: WorkerEnv) -> None:
    publish_example(env, name="pdf")
    publish_example(env, name="pdf-tools")

    assert [one["slug"] for one in get(client, "/api/v1/search?q=pdf&mode=exact")["results"]] == ["pdf"]


def test_the_list_has_the_keys_that_the_client_requires(client: Client, env: WorkerEnv) -> None:
    publish_example(env)

    body = get(client, "/api/v1/skills?limit=25&sort=createdAt")
    [item] = body["items"]

    assert body["nextCursor"] is None
    assert {"slug", "displayName", "tags", "stats", "createdAt", "updatedAt"} <= set(item)
    assert item["latestVersion"]["license"] is None
    assert {type(item["createdAt"]), type(item["latestVersion"]["createdAt"])} == {int}


def test_a_skill_without_a_version_on_offer_is_in_no_list(client: Client, env: WorkerEnv) -> None:
    publish_example(env)
    yank_version(env, "hello-skill", "0.0.1", actor="test", reason="broken")

    assert get(client, "/api/v1/skills")["items"] == []
    detail = get(client, "/api/v1/skills/hello-skill")
    assert detail["latestVersion"] is None
    assert detail["skill"]["slug"] == "hello-skill"


def test_the_cursor_walks_the_whole_list_while_skills_are_published(client: Client, env: WorkerEnv) -> None:
    for number in range(5):
        publish_example(env, name=f"skill-{number}")
    first = get(client, "/api/v1/skills?limit=2&sort=newest")
    publish_example(env, name="late")
    seen = [item["slug"] for item in first["items"]]
    cursor = first["nextCursor"]
    while cursor:
        page = get(client, f"/api/v1/skills?limit=2&sort=newest&cursor={cursor}")
        seen += [item["slug"] for item in page["items"]]
        cursor = page["nextCursor"]

    assert seen == [f"skill-{number}" for number in (4, 3, 2, 1, 0)]


@pytest.mark.parametrize("sort", ["createdAt", "stars", "downloads", "installs", "trending", "rating", "", "name"])
def test_every_order_of_the_client_is_answered(client: Client, env: WorkerEnv, sort: str) -> None:
    publish_example(env)
    assert len(get(client, f"/api/v1/skills?sort={sort}")["items"]) == 1


@pytest.mark.parametrize(
    "address",
    [
        "/api/v1/skills?sort=nonsense",
        "/api/v1/skills?cursor=nonsense",
        "/api/v1/skills?cursor=WzEsMiwzXQ",
        "/api/v1/skills?limit=-1",
        "/api/v1/skills?limit=%D9%A1",
        "/api/v1/skills/hello-skill/versions?cursor=x",
        "/api/v1/search?q=%00",
        "/api/v1/search?q=" + "x" * 600,
    ],
)
def test_nonsense_is_answered_in_words(client: Client, env: WorkerEnv, address: str) -> None:
    publish_example(env)
    answer = client.get(address)
    assert answer.status_code == 400
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.content.decode().endswith((".", "it"))


def test_the_detail_tells_a_skill_its_owner_and_its_moderation(client: Client, env: WorkerEnv) -> None:
    finding = {"ruleId": "net.fetch", "severity": "medium", "file": "scripts/run.sh", "line": 2, "excerpt": "curl"}
    publish_example(env, verdict="notes", findings=(finding,), declared_version="1.0.0")

    body = get(client, "/api/v1/skills/hello-skill")

    assert body["owner"]["handle"] == "acme"
    assert body["latestVersion"]["version"] == "1.0.0"
    assert body["moderation"]["isMalwareBlocked"] is body["moderation"]["isSuspicious"] is False
    assert body["moderation"]["reasonCodes"] == ["net.fetch"]
    [evidence] = get(client, "/api/v1/skills/hello-skill/moderation")["moderation"]["evidence"]
    assert (evidence["severity"], evidence["line"], evidence["evidence"]) == ("warn", 2, "curl")


def test_the_owner_must_be_the_owner(client: Client, env: WorkerEnv) -> None:
    publish_example(env)

    assert client.get("/api/v1/skills/hello-skill?ownerHandle=acme").status_code == 200
    assert client.get("/api/v1/skills/hello-skill?ownerHandle=Acme").status_code == 200
    stranger = client.get("/api/v1/skills/hello-skill?ownerHandle=mallory")
    assert (stranger.status_code, stranger.content) == (404, b"Skill not found. Near names: @acme/hello-skill")


def test_versions_are_paged_newest_first(client: Client, env: WorkerEnv) -> None:
    for number in range(3):
        publish_example(env, body=f"Content {number}.")

    first = get(client, "/api/v1/skills/hello-skill/versions?limit=2")
    rest = get(client, f"/api/v1/skills/hello-skill/versions?limit=2&cursor={first['nextCursor']}")

    assert [one["version"] for one in first["items"] + rest["items"]] == ["0.0.3", "0.0.2", "0.0.1"]
    assert rest["nextCursor"] is None
    assert first["versions"][0]["createdAt"][:2] == "20"


def test_a_version_lists_its_files(client: Client, env: WorkerEnv) -> None:
    publish_example(env)
    body = get(client, "/api/v1/skills/hello-skill/versions/0.0.1")

    assert [file["path"] for file in body["version"]["files"]] == ["SKILL.md", "scripts/run.sh"]
    assert body["skill"] == {"slug": "hello-skill", "displayName": "hello-skill"}
    assert client.get("/api/v1/skills/hello-skill/versions/9.9.9").status_code == 404


def test_the_download_is_a_zip_with_skill_md_at_its_root(client: Client, env: WorkerEnv) -> None:
    publish_example(env)
    answer = client.get("/api/v1/download?slug=hello-skill&version=0.0.1")

    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.namelist() == ["SKILL.md", "scripts/run.sh"]


def test_a_version_is_known_again_by_its_files(client: Client, env: WorkerEnv) -> None:
    publish_example(env)
    publish_example(env, body="Changed.")
    files = get(client, "/api/v1/skills/hello-skill/versions/0.0.1")["version"]["files"]
    known = fingerprint((file["path"], file["sha256"]) for file in files)

    body = get(client, f"/api/v1/resolve?slug=hello-skill&hash={known}")
    assert (body["match"], body["latestVersion"]) == ({"version": "0.0.1"}, {"version": "0.0.2"})
    assert get(client, f"/api/v1/resolve?slug=hello-skill&hash={'0' * 64}")["match"] is None
    assert client.get("/api/v1/resolve?slug=nope&hash=0").content == b"Skill not found"


def test_the_fingerprint_follows_the_order_of_the_client() -> None:
    # In that order scripts/run.sh comes before SKILL.md, unlike in the order of bytes.
    files = [("SKILL.md", "a" * 64), ("scripts/run.sh", "b" * 64), (".hidden/x", "c" * 64)]
    assert fingerprint(files) == "058b804673f8865377777b01c7daa7c419dfeb69610ded058d621dc7e873f575"


def test_a_file_is_served_as_text_that_cannot_run(client: Client, env: WorkerEnv) -> None:
    files: dict[str, bytes | str] = {
        "SKILL.md": "---\nname: x\n---\n",
        "page.html": "<script>alert(1)</script>",
        "b": b"\xff",
    }
    publish_example(env, files=files)

    page = client.get("/api/v1/skills/hello-skill/file?path=page.html&version=0.0.1")
    assert page.content == b"<script>alert(1)</script>"
    assert page.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert "sandbox" in page.headers["Content-Security-Policy"]
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert client.get("/api/v1/skills/hello-skill/file?path=b").headers["Content-Type"] == "application/octet-stream"
    assert client.get("/api/v1/skills/hello-skill/file?path=../SKILL.md").status_code == 404
    assert client.get("/api/v1/skills/hello-skill/file?path=SKILL.md&tag=latest").status_code == 200
    assert client.get("/api/v1/skills/hello-skill/file?path=SKILL.md&tag=beta").status_code == 404


def test_install_and_verify_name_the_archive(client: Client, env: WorkerEnv) -> None:
    publish_example(env)

    install = get(client, "/api/v1/skills/hello-skill/install")
    assert install["archive"]["downloadUrl"] == f"{env.public_url}/api/v1/download?slug=hello-skill&version=0.0.1"
    verified = get(client, "/api/v1/skills/hello-skill/verify")
    assert (verified["decision"], verified["resolvedFrom"]) == ("pass", "latest")
    yank_version(env, "hello-skill", "0.0.1", actor="test", reason="broken")
    assert get(client, "/api/v1/skills/hello-skill/verify?version=0.0.1")["reasons"] == ["yanked: broken"]


@pytest.mark.parametrize(
    ("method", "address", "status"),
    [
        ("post", "/api/v1/skills/-/merge", 404),
        ("put", "/api/v1/skills", 405),
        ("put", "/api/v1/skills/hello-skill", 405),
        ("delete", "/api/v1/skills/hello-skill/versions", 405),
    ],
)
def test_what_is_not_offered_says_so(client: Client, method: str, address: str, status: int) -> None:
    answer = getattr(client, method)(address)
    assert answer.status_code == status
    assert b"does not offer" in answer.content


def test_a_head_request_has_no_body(client: Client, env: WorkerEnv) -> None:
    publish_example(env)
    answer = client.head("/api/v1/skills/hello-skill")
    assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.parametrize(
    ("license_", "said"), [("Apache-2.0", "Licence: Apache-2.0."), ("", "Its author states no licence.")]
)
def test_the_true_licence_stands_where_the_client_prints_its_own(
    client: Client, env: WorkerEnv, license_: str, said: str
) -> None:
    publish_example(env, license=license_)
    detail = get(client, "/api/v1/skills/hello-skill")
    assert (detail["latestVersion"]["license"], detail["latestVersion"]["spdx"]) == (None, license_)
    for shape in (
        detail["skill"],
        get(client, "/api/v1/skills")["items"][0],
        get(client, "/api/v1/search?q=hello")["results"][0],
    ):
        assert shape["summary"] == f"Says hello as hello-skill. ({said})"
