"""What is measured is every route that visitors and clients read."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.urls import resolve

from tests.bench.page_addresses import BARS, Sample, admin_addresses, public_addresses
from tests.routes import every_route

SAMPLE = Sample(
    slug="pdf-tools",
    version="1.0.0",
    collection="our-team",
    submission="sub_0",
    repository="https://github.com/acme/skills",
    small="acme",
    large="mallory",
    filters={"verdict": "clear", "capability": "shell", "publisher": "mallory"},
    rare={"verdict": "notes", "capability": "files", "publisher": "acme"},
    deep={"newest": "a", "name": "b"},
)
# They change something, or answer only to it.
WRITES = {"appeal", "scan-again", "stop", "installs", "check-updates", "external-scans/{}", "listings", "jobs"}
# The first lasts as long as a submission does, the second tells of processes, the others are what is compared with and
# what takes submissions.
OTHERS = {"/submissions/{}/events", "/healthz", "/favicon.ico", "/api/v1/submissions"}


def test_every_address_leads_to_a_route_and_every_route_that_is_read_has_an_address() -> None:
    addresses = list(public_addresses(SAMPLE))
    measured = {f"/{resolve(urlsplit(one.path).path).route}" for one in addresses}
    read = {
        route
        for route in every_route()
        if not route.startswith("/admin") and not any(route.endswith(f"/{end}") for end in WRITES)
    }
    places = {_with_places(route) for route in measured}
    assert read - places == OTHERS
    assert {one.kind for one in addresses} | {one.kind for one in admin_addresses(200)} == set(BARS)


def _with_places(route: str) -> str:
    return "/".join("@".join("{}" if "<" in part else part for part in one.split("@")) for one in route.split("/"))
