"""The OpenAPI document says what the API under /api/v1 answers: nothing less, and nothing that is not answered."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.test import Client, override_settings
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from marketplace.api import described as of_skills
from marketplace.api.bounds import MOST_CHECKED
from marketplace.catalog import quarantine_skill, yank_version
from marketplace.models import SkillVersion
from marketplace.provenance.signing import sign_published
from marketplace.skill_sets.editing import Choice, Told, create_collection
from marketplace.skills.blocklist import BlockKind, add_block
from submissions.api import described
from submissions.discovery import DiscoveredSkill, Discovery
from submissions.jobs.records import Job
from submissions.jobs.work import start_job
from submissions.listings import keep_listing
from submissions.states import State
from tests.marketplace.factories import publish_example
from tests.marketplace.provenance.signing_registry import signing_with
from tests.routes import PLACE, every_route
from tests.submissions.factories import make_submission
from vskill.access_tokens.scopes import Scope
from vskill.access_tokens.tokens import make_token
from vskill.environments import WorkerEnv
from vskill.kv.threads import writers
from vskill.openapi import document
from vskill.rate_limits.kinds import Kind

DOCUMENT: Final = document(*described.TABLES)
NOT_DESCRIBED: Final = of_skills.NOT_DESCRIBED | described.NOT_DESCRIBED
IN_PATH: Final = ("slug", "owner", "repo", "version", "submission_id", "listing_id", "job_id", "scan_id")
PLACES: Final = {"slug": "hello-skill", "owner": "acme", "repo": "skills", "version": "0.0.2"}
# What a route needs, or what shows more of it.
QUERIES: Final = {
    "/search": "q=hello&limit=5",
    "/resolve": "slug=hello-skill",
    "/download": "slug=hello-skill",
    "/scan/download/{slug}": "version=0.0.2",
    "/blocklist/check": "name=bad-skill",
    "/log/inclusion": "index=0",
    "/log/consistency": "first=1",
    "/skills": "limit=1&sort=name",
    "/skills/search": "q=hello",
    "/diff": "from=0.0.1&to=0.0.2",
    "/compare": "from=0.0.1&to=0.0.2",
    "/file": "path=SKILL.md",
}


def with_places(path: str) -> str:
    return re.sub(r"\{\w*\}", PLACE, path)


def closed(schema: Any) -> Any:
    """Return a schema whose objects have no property that is not described."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: closed(value) for name, value in schema.items()}
    if isinstance(made.get("properties"), dict) and made.get("type") == "object":
        made.setdefault("additionalProperties", False)
    return made


def check(path: str, method: str, answer: Any, *, has_body: bool = True) -> None:
    """Check that an answer has a status, a type and a body that its operation describes; HEAD has no body."""
    told = DOCUMENT["paths"][path][method]["responses"].get(str(answer.status_code))
    assert told is not None, (path, method, answer.status_code, answer.content[:300])
    for name in told.get("headers", {}):
        assert name in answer.headers, (path, answer.status_code, name)
    if answer.status_code == 304:
        return
    media = answer.headers["Content-Type"].partition(";")[0]
    assert media in told["content"], (path, method, answer.status_code, media)
    if media == "application/json" and has_body:
        schema = closed({**told["content"][media]["schema"], "components": DOCUMENT["components"]})
        errors = [
            f"{one.json_path}: {one.message[:300]}" for one in Draft202012Validator(schema).iter_errors(answer.json())
        ]
        assert errors == [], (path, method, answer.status_code)


def reads() -> Iterator[tuple[str, dict[str, Any]]]:
    return ((path, methods["get"]) for path, methods in DOCUMENT["paths"].items() if "get" in methods)


def test_every_route_of_the_api_is_described_or_named_with_the_reason_why_not() -> None:
    routes = {route for route in every_route() if route.startswith("/api/v1/")}
    described_routes = {with_places(path) for path in DOCUMENT["paths"]}
    left_out = {with_places(path) for path in NOT_DESCRIBED}
    assert described_routes | left_out == routes
    assert not described_routes & left_out


def test_the_document_is_valid_openapi() -> None:
    validate(DOCUMENT)


class Registry:
    """A small registry with something of each kind, and the addresses of all of it."""

    def __init__(self, env: WorkerEnv) -> None:
        """Publish, withdraw, sign and submit."""
        publish_example(env)
        publish_example(env, body="It has changed.")
        publish_example(env, name="bad-skill")
        publish_example(env, name="yanked-skill")
        quarantine_skill(env, "bad-skill", actor="test", reason="bad")
        yank_version(env, "yanked-skill", "0.0.1", actor="test", reason="broken")
        add_block(env, BlockKind.CONTENT, "a" * 64, actor="test", reason="bad")
        sign_published(env)
        create_collection(env, "ours", Told("Ours", "At work.", (Choice("hello-skill"),)), actor="test", reason="test")
        self.scan = f"scan-{SkillVersion.objects.get(skill__slug='hello-skill', version='0.0.2').pk}-1"
        self.submission = make_submission(env, State.PUBLISHED).id
        found = tuple(DiscoveredSkill(f"skills/{name}", name, "Does it.", (), name * 64) for name in "ab")
        discovery = Discovery("https://github.com/acme/skills", "1" * 40, found, "HEAD")
        self.listing = async_to_sync(keep_listing)(env, discovery)

        async def start() -> Job:
            return await writers.run(start_job, env, discovery, source="api", actor="test")

        self.job = async_to_sync(start)().id

    def address(self, path: str, **places: str) -> str:
        """Return an address of a route that leads to something, with the query that it needs."""
        own = {"submission_id": self.submission, "listing_id": self.listing, "job_id": self.job, "scan_id": self.scan}
        if path.startswith("/api/v1/collections"):
            own["slug"] = "ours"
        known = {**PLACES, **own, **places}
        query = next((QUERIES[end] for end in sorted(QUERIES, key=len, reverse=True) if path.endswith(end)), "")
        return re.sub(r"\{(\w+)\}", lambda found: known[found[1]], path) + f"?{query}"


@pytest.mark.django_db(transaction=True)
def test_what_the_api_answers_is_what_the_document_says(tmp_path: Path) -> None:
    with signing_with(tmp_path / "keys.pem") as env:
        registry, client = Registry(env), Client()
        root = get_user_model()._default_manager.create_superuser("root")
        _row, staff = make_token(env, root, name="script", scopes=list(Scope))
        for path, operation in reads():
            address = registry.address(path)
            own = {"Authorization": f"Bearer {staff}"} if "security" in operation else {}
            answer = client.get(address, headers=own)
            assert answer.status_code == (401 if path.endswith("/whoami") else 200), (address, answer.content[:300])
            check(path, "get", answer)
            if "304" in operation["responses"]:
                again = client.get(address, headers={"If-None-Match": answer.headers["ETag"]})
                assert again.status_code == 304, address
                check(path, "get", again)
            refused = {
                405: client.patch(address),
                400: client.get(f"{address}&x=%00"),
                401: client.get(address, headers={"Authorization": "Bearer vsk_nothing"}),
            }
            if "{" in path:
                refused[404] = client.get(registry.address(path, **dict.fromkeys(IN_PATH, "none")), headers=own)
            for status, one in refused.items():
                assert one.status_code == status, (path, status, one.status_code)
                check(path, "get", one)
            if path.startswith("/api/v1/skills/{"):
                for slug in ("bad-skill", "yanked-skill"):
                    check(path, "get", client.get(registry.address(path, slug=slug)))
        updates = "/api/v1/skills/check-updates"
        installed = [{"name": name, "currentVersion": "0.0.1"} for name in ("hello-skill", "bad-skill", "none")]
        for sent, status in (
            (json.dumps({"skills": installed}), 200),
            (json.dumps({"skills": installed * MOST_CHECKED}), 400),
            (" " * 2**19, 413),
        ):
            told = client.post(updates, sent, content_type="application/json")
            assert told.status_code == status
            check(updates, "post", told)
        stop = "/api/v1/jobs/{job_id}/stop"
        check(stop, "post", client.post(registry.address(stop), "{}", content_type="application/json"))
        for path in ("/api/v1/submissions", "/api/v1/listings", "/api/v1/jobs"):
            for sent, status in (("{}", 400), (" " * 2**17, 413)):
                told = client.post(path, sent, content_type="application/json")
                assert told.status_code == status, path
                check(path, "post", told)
        asks = "/api/v1/skills/{slug}/scan-again"
        for slug in ("hello-skill", "none"):
            check(asks, "post", client.post(registry.address(asks, slug=slug), "{}", content_type="application/json"))
        check("/api/v1/stars/{slug}", "post", client.post("/api/v1/stars/hello-skill"))
        with override_settings(RATE_LIMITS=dict.fromkeys(Kind, "1/hour")):
            for path, _operation in reads():
                answers = [client.get(registry.address(path)) for _ in range(2)]
                assert answers[1].status_code == 429, path
                check(path, "get", answers[1])


@pytest.mark.django_db(transaction=True)
def test_pages_of_any_origin_may_read_and_ask_what_they_may(client: Client, env: WorkerEnv) -> None:
    publish_example(env)
    for path in ("/api/v1/skills", "/api/v1/skills/hello-skill", "/api/v1/submissions", "/api/v1/openapi.json"):
        asked, read = client.options(path), client.get(path)
        assert asked.status_code == 204, path
        assert "GET" in asked.headers["Access-Control-Allow-Methods"]
        assert "Authorization" in asked.headers["Access-Control-Allow-Headers"]
        assert read.headers["Access-Control-Allow-Origin"] == asked.headers["Access-Control-Allow-Origin"] == "*"
    read = client.get("/api/v1/openapi.json")
    assert read.json() == DOCUMENT
    unchanged = client.get("/api/v1/openapi.json", headers={"If-None-Match": read.headers["ETag"]})
    assert unchanged.status_code == 304
