"""A repository that its host still gives git under the name of its former owner proves nothing for that one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client, override_settings

from marketplace.models import PublisherClaim
from marketplace.ownership.claims import owner_claim
from tests.git_factory import git, make_repository, skill_md
from tests.submissions.claiming.handing import PAGE, account
from tests.submissions.source.https_host import CERTIFICATE, HttpsHost, https_host
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[HttpsHost]:
    """Serve acme/skills over https, which git gets under the name of old, its former owner, as well."""
    (tmp_path / "acme").mkdir()
    make_repository(tmp_path / "acme/skills.git", {"one/SKILL.md": skill_md("one")})
    (tmp_path / "old").symlink_to("acme")
    with https_host(tmp_path) as host:
        policy = {"source_private_hosts": [f"127.0.0.1:{host.port}"], "source_ca_file": str(CERTIFICATE)}
        with override_settings(VSKILL_ENVIRONMENTS={"default": {"hosts": ["testserver"], "policy": policy}}):
            yield host


def checked(host: HttpsHost, repository: Path, owner: str = "old") -> Any:
    """Begin a claim of an owner, push the branch of its code to the one repository there is, and check it."""
    client = Client()
    client.force_login(account("ada"))
    client.post(PAGE, {"repository_url": f"https://127.0.0.1:{host.port}/{owner}/skills"})
    claim = PublisherClaim.objects.get()
    git(repository, "branch", claim.code, "main")
    return client.post(PAGE, {"check": claim.pk})


@pytest.mark.parametrize(
    "page",
    [
        pytest.param((301, "/acme/skills"), id="to its new owner"),
        pytest.param((302, "https://127.0.0.1:{port}/acme/skills"), id="to its whole address"),
        pytest.param((302, "/users/sign_in"), id="to a sign-in, behind which it may have moved"),
        pytest.param((308, "/old/skills/../../acme/skills"), id="by dots"),
        pytest.param((308, "/old/skills/%2E%2e/x"), id="by quoted dots"),
        pytest.param((307, "http://127.0.0.1:{port}/old/skills"), id="to what nobody signs"),
        pytest.param((302, "https://[x/old/skills"), id="to no address"),
        pytest.param((302, ""), id="to itself for ever"),
    ],
)
def test_a_page_that_redirects_elsewhere_proves_nothing(
    env: WorkerEnv, host: HttpsHost, tmp_path: Path, page: tuple[int, str]
) -> None:
    host.pages["/old/skills"] = (page[0], page[1].format(port=host.port))
    answer = checked(host, tmp_path / "acme/skills.git")

    assert answer.status_code == 422
    assert "redirects" in answer.content.decode()
    # Git alone would have given the code.
    assert any(path.startswith("/old/skills") and "git-upload-pack" in path for path in host.requests)
    assert owner_claim(env, f"127.0.0.1:{host.port}/old") is None


def test_a_host_that_does_not_answer_for_its_page_is_asked_again_later(
    env: WorkerEnv, host: HttpsHost, tmp_path: Path
) -> None:
    host.pages["/old/skills"] = (503, "")
    assert "check again later" in checked(host, tmp_path / "acme/skills.git").content.decode()
    assert owner_claim(env, f"127.0.0.1:{host.port}/old") is None


@pytest.mark.parametrize(
    "pages",
    [
        pytest.param({"/acme/skills": (200, "")}, id="a page"),
        pytest.param({"/acme/skills": (404, "")}, id="no page"),
        pytest.param({"/acme/skills": (302, "/acme/skills/src/main/")}, id="its default branch"),
        pytest.param({"/acme/skills": (301, "/acme/skills/"), "/acme/skills/": (200, "")}, id="with a slash"),
    ],
)
def test_the_owner_proves_it_where_the_page_is_its_own_or_there_is_none(
    env: WorkerEnv, host: HttpsHost, tmp_path: Path, pages: dict[str, tuple[int, str]]
) -> None:
    host.pages.update(pages)
    assert checked(host, tmp_path / "acme/skills.git", "acme").status_code == 302
    assert owner_claim(env, f"127.0.0.1:{host.port}/acme") is not None
