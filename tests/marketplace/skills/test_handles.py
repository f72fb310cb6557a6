"""Every publisher has a name that each client takes, and every name of a publisher leads to it on every surface."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from marketplace.skills.handles import present_handle, short_handle
from marketplace.skills.publishers import publisher_of
from tests.marketplace.factories import publish_example
from tests.marketplace.skills.test_publishers import OWNERS
from vskill.environments import WorkerEnv

# GITHUB_OWNER_PATTERN of the client skills 1.5 and 1.7.
OF_THE_CLIENT: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,38}")
DOTTED: Final = "https://git.corp.example/platform/skills"
LONG: Final = "https://git.engineering.of.a-long-company-name.example/platform/skills"
ODD: Final = "https://git.corp.example/Team_One/skills"


@pytest.mark.parametrize(
    ("repo_url", "short"),
    [
        ("https://github.com/acme/r", "acme"),
        ("https://github.com/acme-/r", "acme-"),
        ("https://gitlab.com/acme/r", "acme--gitlab--com"),
        (DOTTED, "platform--git--corp--example"),
        ("file:///srv/acme/r", "acme--local"),
    ],
)
def test_a_short_handle_reads_like_the_handle(repo_url: str, short: str) -> None:
    assert short_handle(publisher_of(repo_url).handle) == short


def test_no_two_publishers_share_a_short_handle_and_each_client_takes_it() -> None:
    handles = [publisher_of(owner).handle for owner in OWNERS]
    short = [short_handle(handle) for handle in handles]

    assert len(set(short)) == len(short)
    assert all(OF_THE_CLIENT.fullmatch(one) for one in short)


@given(st.lists(st.text("ab0.-_~", min_size=1, max_size=60), unique=True, max_size=30))
def test_no_two_handles_whatever_they_are_share_a_short_one(handles: list[str]) -> None:
    # Accounts of GitHub have no two hyphens in a row; those are what the others are told by.
    real = [one for one in handles if not (OF_THE_CLIENT.fullmatch(one) and "--" in one)]
    short = [short_handle(one) for one in real]

    assert len(set(short)) == len(short)
    assert all(OF_THE_CLIENT.fullmatch(one) for one in short)


pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(params=[DOTTED, LONG, ODD, "https://github.com/acme_corp/skills"])
def owned(env: WorkerEnv, request: pytest.FixtureRequest) -> tuple[str, str]:
    """Publish a skill of an owner, and return its handle and its short handle."""
    publish_example(env, name="pdf-tools", repo_url=request.param)
    publish_example(env, name="other-tools", repo_url="https://github.com/other/skills")
    handle = publisher_of(request.param).handle
    return handle, short_handle(handle)


def test_every_surface_knows_both_names(env: WorkerEnv, client: Client, owned: tuple[str, str]) -> None:
    def get(address: str) -> Any:
        return client.get(address, follow=True)

    for name in owned:
        assert present_handle(env, f"@{name.upper()}") == owned[0]
        for written in (name, f"@{name}"):
            assert get(f"/api/v1/skills/pdf-tools?ownerHandle={written}").status_code == 200, written
            assert get(f"/api/v1/download?slug=pdf-tools&ownerHandle={written}").status_code == 200
            assert get(f"/{written}@pdf-tools/.well-known/agent-skills/index.json").status_code == 200
            assert get(f"/{written}/pdf-tools/.well-known/agent-skills/index.json").status_code == 200
            index = get(f"/{written}/.well-known/agent-skills/index.json").json()
            assert [one["name"] for one in index["skills"]] == ["pdf-tools"]
            assert get(f"/git/{written}/pdf-tools.git/info/refs?service=git-upload-pack").status_code == 200
            assert get(f"/git/{written}.git/info/refs?service=git-upload-pack").status_code == 200
            assert get(f"/publishers/{written}").redirect_chain[-1:] in ([], [(f"/publishers/{owned[0]}", 301)])
        assert get(f"/api/v1/skills/@{name}/pdf-tools").json()["skill"]["slug"] == "pdf-tools"
        assert get(f"/api/v1/skills/@{name}/pdf-tools/versions").status_code == 200
        assert get(f"/api/v1/skills/{name}/skills/pdf-tools").status_code == 200
        assert get(f"/@{name}/pdf-tools").redirect_chain == [("/skills/pdf-tools", 301)]
        assert get(f"/@{name}").redirect_chain[-1] == (f"/publishers/{owned[0]}", 301)
        assert [one["name"] for one in get(f"/api/search?q=tools&owner={name}").json()["skills"]] == ["pdf-tools"]
        assert [one["slug"] for one in get(f"/api/v1/skills?publisher={name}").json()["items"]] == ["pdf-tools"]
        assert get(f"/publishers/{name}/marketplace.json").json()["plugins"][0]["name"] == "pdf-tools"
        assert b"pdf-tools" in get(f"/publishers/{name}/feed.atom").content
        sent = {"skills": [{"name": f"@{name}/pdf-tools", "currentVersion": "0.0.0"}]}
        updates = client.post("/api/v1/skills/check-updates", json.dumps(sent), content_type="application/json").json()
        assert updates["results"][0]["latest"] == "0.0.1"


def test_a_skill_is_not_found_under_another_owner(client: Client, owned: tuple[str, str]) -> None:
    for address in (
        "/@other/pdf-tools",
        "/api/v1/skills/@other/pdf-tools",
        "/api/v1/skills/pdf-tools?ownerHandle=@other",
        f"/@{owned[1]}/other-tools",
        f"/{owned[1]}/other-tools/.well-known/agent-skills/index.json",
    ):
        assert client.get(address).status_code == 404, address


def test_a_search_names_its_hits_by_what_the_client_takes(client: Client, owned: tuple[str, str]) -> None:
    (hit, *_rest) = client.get(f"/api/search?q=pdf&owner={owned[1]}").json()["skills"]
    assert hit["id"] == f"{owned[1]}/pdf-tools"
    assert hit["source"].endswith(f"/{owned[1]}")


def test_whose_own_name_it_is_comes_before_a_short_one(env: WorkerEnv) -> None:
    publish_example(env, name="one", repo_url="https://github.com/acme--local/skills")
    publish_example(env, name="two", repo_url="file:///srv/acme/skills")

    assert present_handle(env, "acme--local") == "acme--local"
    assert present_handle(env, "acme.local") == "acme.local"


def test_a_skill_called_like_a_part_of_the_api_has_a_page_of_its_owner(env: WorkerEnv, client: Client) -> None:
    publish_example(env, name="versions")
    assert client.get("/api/v1/skills/@acme/versions").json()["skill"]["slug"] == "versions"


@pytest.mark.parametrize("name", ["--", "a--", "nobody---aaaaaaaaaaaaaaaa", "a--b--c", "\0--", "x" * 300, "%FF--a", ""])
def test_a_name_of_nobody_leads_nowhere(env: WorkerEnv, client: Client, name: str) -> None:
    assert present_handle(env, name) is not None
    assert client.get("/api/v1/skills", {"publisher": name}).status_code in (200, 400)


def test_an_owner_alone_is_not_found_where_it_is_the_handle_of_somebody_else(env: WorkerEnv, client: Client) -> None:
    publish_example(env, name="of-gitlab", repo_url="https://gitlab.com/acme/skills")
    address = "/api/v1/skills/of-gitlab?ownerHandle="
    assert client.get(f"{address}acme").status_code == 200

    publish_example(env, name="of-github", repo_url="https://github.com/acme/skills")
    assert client.get(f"{address}acme").status_code == 404
    assert client.get(f"{address}acme.gitlab.com").status_code == 200
    assert client.get(f"{address}acme--gitlab--com").status_code == 200
    assert client.get("/api/v1/skills/of-github?ownerHandle=acme").status_code == 200
