"""What is measured is every route that visitors and clients read, and each of them answers."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from django.test import Client
from django.urls import resolve

from submissions.demo.many import write_many
from tests.bench.page_addresses import Sample, admin_addresses, public_addresses
from tests.bench.pages import BARS
from tests.bench.pages_ours import FINE, sample_of
from tests.routes import every_route
from vskill.environments import WorkerEnv
from vskill.worker_context import run_with_worker_env

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
    alone={"agent": "codex", "tag": "pdf", "license": "MIT"},
    deep={"newest": "a", "name": "b"},
)
# They change something, or answer only to it.
WRITES = {
    "device/token",
    "appeal",
    "scan-again",
    "stop",
    "installs",
    "check-updates",
    "external-scans/{}",
    "webhooks/{}",
    "listings",
    "jobs",
    "device/code",
    "stars/{}",
    "git-upload-pack",
    "mcp",
    "-/upload-url",
    "-/upload/{}",
    "undelete",
    "-/scan",
    "-/scan/{}",
    "-/scan/{}/download",
    "-/scan/download/{}",
    "restore",
    "transfer",
    "transfer/accept",
    "transfer/reject",
    "transfer/cancel",
}
# The first lasts as long as a submission does, the second tells of processes, the next are what is compared with and
# what takes submissions, and the others are of an account, or for people with a role.
OTHERS = {
    *("/submissions/{}/events", "/healthz", "/favicon.ico", "/api/v1/submissions"),
    *(
        "/sign-in",
        "/sign-in/github",
        "/sign-in/github/callback",
        "/sign-in/oidc/{}",
        "/sign-in/oidc/{}/callback",
        "/sign-in/forgotten",
        "/sign-in/new-password/{}/{}",
        "/sign-out",
        "/account",
        "/account/password",
        "/account/tokens",
        "/account/notifications",
        "/account/notifications/confirm/{}",
        "/account/notifications/end/{}",
        "/feeds/notifications.atom",
        "/feeds/notifications/{}.atom",
        "/account/publishers",
        "/account/withdraw",
        "/api/v1/transfers/incoming",
        "/api/v1/transfers/outgoing",
    ),
    *("/api/v1/review", "/api/v1/review/{}", "/api/v1/review/{}/decision", "/api/v1/review/{}/undo"),
    *("/api/v1/operate/queue", "/api/v1/operate/submissions/{}", "/api/v1/operate/skills/{}"),
    *("/api/v1/operate/blocks", "/api/v1/operate/blocks/remove"),
}


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


@pytest.mark.django_db(transaction=True)
def test_the_addresses_that_are_measured_answer_in_a_registry_of_invented_skills(
    env: WorkerEnv, client: Client
) -> None:
    def sample() -> Sample:
        write_many(env, 40, told=lambda _count: None)
        return sample_of(env)

    of_routes = {
        resolve(urlsplit(one.path).path).route: one for one in public_addresses(run_with_worker_env(env, sample))
    }
    answers = {one.path: client.get(one.path).status_code for one in of_routes.values()}
    assert {path: status for path, status in answers.items() if status not in FINE} == {}


def _with_places(route: str) -> str:
    return re.sub(r"<[^>]+>", "{}", route)
