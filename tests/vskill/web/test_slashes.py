"""An address with a slash too many leads to the page that was meant, and to nowhere else."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient, Client

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("/skills/", "/skills"),
        ("/skills//", "/skills"),
        ("/skills/?q=a%20b&page=2", "/skills?q=a%20b&page=2"),
        ("/skills/colour-contrast/", "/skills/colour-contrast"),
        ("/skills/one/scan/", "/skills/one/scan"),
        ("/skills/one/files/a%20b.md/", "/skills/one/files/a%20b.md"),
        ("/submit/", "/submit"),
        ("/queue/", "/queue"),
        ("/about/verification/", "/about/verification"),
        ("/healthz/", "/healthz"),
        ("//", "/"),
    ],
)
async def test_a_page_is_found_below_both_kinds_of_server(asked: str, meant: str) -> None:
    # With a host, because two leading slashes begin one.
    address = f"http://testserver{asked}"
    for response in (await sync_to_async(Client().get)(address), await AsyncClient().get(address)):
        assert (response.status_code, response["Location"]) == (301, meant)


def test_letters_of_any_script_stay_as_they_are() -> None:
    # Django's AsyncClient misreads them.
    assert Client().get("/skills/%E8%AF%97/")["Location"] == "/skills/%E8%AF%97"


@pytest.mark.parametrize(
    "asked", ["/nowhere/", "/api/v1/skills/", "/admin/nowhere/", "/admin/", "//evil.example/", "//evil.example/skills/"]
)
def test_what_has_no_page_without_the_slash_stays_as_it_was(asked: str) -> None:
    response = Client().get(f"http://testserver{asked}")
    assert response.status_code == 404 or response["Location"].startswith("/admin/")


def test_a_form_is_not_led_on() -> None:
    assert Client().post("/submit/", {}).status_code == 404
