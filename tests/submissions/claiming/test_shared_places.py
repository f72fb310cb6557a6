"""Repositories by which nobody proves to be an owner, because others share their folder or may write in them."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from marketplace.models import PublisherClaim
from marketplace.ownership.claims import ClaimRefused, begin, owner_claim
from tests.submissions.claiming.handing import ACME, PAGE, account
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)


def signed_in(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.mark.parametrize(
    "address",
    [
        "https://git.code.sf.net/p/someproject/code",
        "https://git.code.sf.net/p/skills",
        "https://git.kernel.org/pub/scm/linux/kernel/git/mallory/skills",
        "https://git.corp.example/cgit/skills.git",
        "https://review.corp.example/a/skills",
        "https://git.corp.example/scm/corp/skills",
        "https://gitlab.com/snippets/12",
        "https://gitlab.com/acme/sub/team/skills",
        "https://github.com/acme/skills.wiki",
        "https://github.com/acme/skills.WIKI.git",
    ],
)
def test_a_repository_that_does_not_say_who_owns_it_begins_no_claim(env: WorkerEnv, address: str) -> None:
    mallory = account("mallory")
    answer = signed_in(mallory).post(PAGE, {"repository_url": address})

    assert answer.status_code == 422
    assert "operators of this registry, who can grant" in answer.content.decode()
    with pytest.raises(ClaimRefused, match="Nothing was begun"):
        begin(env, mallory, address)
    assert not PublisherClaim.objects.exists()


@pytest.mark.parametrize("address", ["https://github.com/git/git", "https://www.github.com/a/b", "file:///srv/git/x"])
def test_an_owner_that_is_only_called_like_a_folder_of_hosts_is_claimed(env: WorkerEnv, address: str) -> None:
    assert begin(env, account("ada"), address).state == "waiting"


def test_a_claim_that_was_begun_elsewhere_is_not_proven_by_a_wiki(env: WorkerEnv) -> None:
    user = account("ada")
    claim = begin(env, user, ACME)
    PublisherClaim.objects.filter(pk=claim.pk).update(repo_url=f"{ACME}.wiki")

    assert "That is a wiki" in signed_in(user).post(PAGE, {"check": claim.pk}).content.decode()
    assert owner_claim(env, "github.com/acme") is None
