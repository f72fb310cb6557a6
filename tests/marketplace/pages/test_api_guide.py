"""The page about the API names addresses that are there, and methods that they take."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from marketplace.pages.api_guide import GROUPS

pytestmark = pytest.mark.django_db(transaction=True)

CALLS = [call.request for group in GROUPS for call in group.calls]


@pytest.mark.parametrize("call", CALLS)
def test_every_call_is_offered(client: Client, call: str) -> None:
    method, address = call.split(" ")
    path = address.partition("?")[0].replace("{github|gitlab|gitea}", "github")
    answer = client.options(re.sub(r"\{\w+\}", "x", path))
    assert answer.status_code == 204
    assert method in answer.headers["Allow"].split(", ")


def test_the_page_shows_every_call(client: Client) -> None:
    page = client.get("/about/api").content.decode()
    for call in CALLS:
        assert call.replace("&", "&amp;") in page
