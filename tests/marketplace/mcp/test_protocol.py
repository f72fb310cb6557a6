"""How the MCP endpoint speaks each version of the protocol, and what it says to whoever does not."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import Client, override_settings

from marketplace.catalog import quarantine_skill
from marketplace.mcp.methods import METHODS
from marketplace.mcp.versions import LATEST, SPOKEN, WITH_HANDSHAKE
from marketplace.skills.search import MAX_QUERY_LENGTH
from tests.marketplace.factories import publish_example
from tests.marketplace.pages.test_list_cost import MOST_STATEMENTS, asked, reads_every_row
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)

IN_BODY = "io.modelcontextprotocol/protocolVersion"
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def post(body: Any, version: str = "", **headers: str) -> Any:
    """Send a body, text as it is and anything else as JSON, in a version of the protocol."""
    sent = body if isinstance(body, (str, bytes)) else json.dumps(body)
    named = {"MCP-Protocol-Version": version} if version else {}
    return Client().post("/mcp", sent, content_type="application/json", headers={**named, **headers})


def request(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": "one", "method": method, "params": params}


def result(method: str, version: str = WITH_HANDSHAKE[0], **params: Any) -> Any:
    """Return the result of a request; it must have one."""
    return json.loads(post(request(method, **params), version).content)["result"]


def error(answer: HttpResponse) -> tuple[int, int]:
    """Return the HTTP status of an answer and the number of its error."""
    said = json.loads(answer.content)
    assert said["jsonrpc"] == "2.0"
    assert "id" in said
    return answer.status_code, said["error"]["code"]


@pytest.mark.parametrize(
    ("asked", "agreed"),
    [*((one, one) for one in WITH_HANDSHAKE), *((one, WITH_HANDSHAKE[0]) for one in (LATEST, "2024-11-05", "x", 7))],
)
def test_initialize_agrees_on_the_version_that_is_asked_for_or_else_on_the_newest(asked: Any, agreed: str) -> None:
    # A header is not looked at before there is a version.
    answer = post(request("initialize", protocolVersion=asked, capabilities={}, clientInfo={}), "1900-01-01")
    said = json.loads(answer.content)["result"]
    assert (said["protocolVersion"], said["serverInfo"]["name"]) == (agreed, "vskill")
    assert set(said["capabilities"]) == {"resources", "tools", "extensions"}
    assert "Mcp-Session-Id" not in answer.headers


@pytest.mark.parametrize("version", ["", *WITH_HANDSHAKE])
def test_a_notification_is_taken_and_a_ping_answered_without_a_session(version: str) -> None:
    for method in ("notifications/initialized", "notifications/cancelled", "none"):
        answer = post({"jsonrpc": "2.0", "method": method}, version)
        assert (answer.status_code, answer.content) == (202, b"")
    assert json.loads(post(PING, version).content) == {"jsonrpc": "2.0", "id": 1, "result": {}}
    # They would take a 404 for the end of a session.
    assert error(post(request("none"), version)) == (200, -32601)


def test_the_latest_version_has_no_ping_and_says_how_long_its_answers_are_kept() -> None:
    assert error(post(PING, LATEST)) == (404, -32601)
    said = result("server/discover", LATEST)
    assert (said["supportedVersions"], said["ttlMs"], said["resultType"]) == ([*SPOKEN], 0, "complete")
    assert "ttlMs" not in result("tools/list")


@pytest.mark.parametrize("version", ["1900-01-01", "2024-11-05", "2025-06-18, 2025-06-18", "x" * 4000, "\u202e"])
def test_a_version_that_is_not_spoken_is_refused_with_those_that_are(version: str) -> None:
    for answer in (post(PING, version), post(request("ping", _meta={IN_BODY: version})), post([PING], version)):
        assert error(answer) == (400, -32022)
        about = json.loads(answer.content)["error"]["data"]
        assert about["supported"] == [*SPOKEN]
        assert len(about["requested"]) <= 40


def test_headers_and_body_name_the_same_version_and_method() -> None:
    differing = request("tools/list", _meta={IN_BODY: LATEST})
    assert error(post(differing, WITH_HANDSHAKE[0])) == (400, -32020)
    assert error(post(request("tools/list"), LATEST, **{"Mcp-Method": "ping"})) == (400, -32020)
    assert "resultType" in json.loads(post(differing).content)["result"]


@pytest.mark.parametrize("method", ["get", "put", "delete"])
def test_there_is_no_stream_and_no_session_to_end(method: str) -> None:
    answer = getattr(Client(), method)("/mcp", headers={"Accept": "text/event-stream"})
    assert (answer.status_code, answer["Allow"]) == (405, "POST")
    assert error(answer)[1] == -32600


def test_only_the_version_that_has_batches_takes_one(env: WorkerEnv) -> None:
    batch = [PING, {"jsonrpc": "2.0", "method": "notifications/initialized"}, request("initialize"), request("none"), 1]
    for version in ("", "2025-03-26"):
        answer = post(batch, version)
        said = json.loads(answer.content)
        assert (answer.status_code, said[0]) == (200, {"jsonrpc": "2.0", "id": 1, "result": {}})
        assert [one["error"]["code"] for one in said[1:]] == [-32600, -32601, -32600]
        assert post(batch[1:2], version).status_code == 202
        for wrong in ([], [PING] * 21):
            assert error(post(wrong, version)) == (400, -32600)
    for version in (LATEST, "2025-11-25", "2025-06-18"):
        assert error(post([PING], version)) == (400, -32600)


def test_each_message_of_a_batch_counts_towards_the_limit_of_its_client() -> None:
    with override_settings(RATE_LIMITS={"downloads": "3/hour", "reads": ""}):
        said = json.loads(post([PING] * 5).content)
        assert [list(one)[-1] for one in said] == ["result"] * 3 + ["error"] * 2
        assert error(post(PING)) == (429, -32600)


def test_the_answers_to_a_batch_are_no_longer_than_a_large_file(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("marketplace.mcp.views._MOST_ANSWERED", 2000)
    publish_example(env, body="x" * 3000)
    read = request("resources/read", uri="skill://hello-skill/SKILL.md")
    first, second = json.loads(post([read, read]).content)
    assert "x" * 3000 in first["result"]["contents"][0]["text"]
    assert (second["id"], second["error"]["code"]) == ("one", -32600)


WRONG: dict[str, tuple[Any, ...]] = {
    "jsonrpc": ("1.0", 2, None),
    "id": (None, True, 1.5, [], {}),
    "method": (None, 1, [], {}),
    "params": (None, 1, "x", []),
}


@pytest.mark.parametrize(
    "body",
    [
        *({**PING, member: value} for member, values in WRONG.items() for value in values),
        *({}, 1, "null", '"x"', "true"),
        {"jsonrpc": "2.0", "id": 1, "result": {}},
    ],
)
def test_what_is_no_request_is_refused_in_the_form_of_the_protocol(body: Any) -> None:
    assert error(post(body)) == (400, -32600)


@pytest.mark.parametrize("body", ["{", "\0", b"\xff\xfe", "[" * 100_000, "1" * 5000, "{'a': 1}"])
def test_what_is_no_json_is_refused(body: Any) -> None:
    assert error(post(body)) == (400, -32700)


def test_a_body_that_is_too_long_is_refused_and_a_strange_id_returned() -> None:
    assert error(post({**PING, "params": {"x": "x" * 300_000}}))[0] == 413
    for known in ("\0\ud800\u202e", 10**4000, -1, ""):
        assert json.loads(post({**PING, "id": known}).content)["id"] == known


def test_the_resources_are_the_skills_without_findings_on_one_page(env: WorkerEnv) -> None:
    publish_example(env)
    publish_example(env, repo_url="https://github.com/mallory/skills", body="Another.")
    publish_example(env, name="doubtful", verdict="held_high")
    publish_example(env, name="gone")
    quarantine_skill(env, "gone", actor="test", reason="steals keys")
    said = result("resources/list", cursor="\0")
    uris = {one["name"]: one["uri"] for one in said["resources"]}
    assert uris == {
        "hello-skill": "skill://hello-skill/SKILL.md",
        "mallory-hello-skill": "skill://mallory-hello-skill/hello-skill/SKILL.md",
    }
    # Hosts read all pages whenever they start.
    assert "nextCursor" not in said
    for uri in uris.values():
        [read] = result("resources/read", uri=uri)["contents"]
        assert (read["uri"], read["mimeType"], "Says hello" in read["text"]) == (uri, "text/markdown", True)
    for slug, warned in (("hello-skill", False), ("doubtful", True)):
        [read] = result("resources/read", uri=f"skill://{slug}/scripts/run.sh")["contents"]
        assert ("vskill/warning" in read.get("_meta", {})) == warned
    [template] = result("resources/templates/list")["resourceTemplates"]
    assert template["uriTemplate"].replace("{skill}", "hello-skill").replace("{+path}", "SKILL.md") in uris.values()


def test_the_tool_finds_skills_by_words_and_says_where_to_read_them(env: WorkerEnv) -> None:
    publish_example(env)
    publish_example(env, name="doubtful", verdict="held_high")
    [tool] = result("tools/list")["tools"]
    said = result("tools/call", name=tool["name"], arguments={"query": "says hello"})
    [found] = said["structuredContent"]["skills"]
    assert (found["name"], found["uri"]) == ("hello-skill", "skill://hello-skill/SKILL.md")
    assert (json.loads(said["content"][0]["text"]), said["isError"]) == (said["structuredContent"], False)


@pytest.mark.parametrize(
    "arguments",
    [
        *({}, *({"query": one} for one in (None, 1, "", " ", "a\0b", ["x"], "x" * (MAX_QUERY_LENGTH + 1)))),
        *({"query": "x", "limit": one} for one in (0, 21, -1, "1", True, 1.5, None, 10**100)),
    ],
)
def test_arguments_that_the_tool_does_not_take_are_told_to_the_agent(arguments: Any) -> None:
    said = result("tools/call", name="search_skills", arguments=arguments)
    assert said["isError"]
    assert said["content"][0]["text"]


def test_a_call_of_no_tool_is_an_error_of_the_protocol() -> None:
    for params in ({}, {"name": "rm"}, {"name": ["search_skills"]}, {"name": "search_skills", "arguments": []}):
        assert error(post(request("tools/call", **params))) == (200, -32602)


def test_lists_and_the_search_take_few_statements_and_none_reads_every_skill(env: WorkerEnv) -> None:
    for number in range(3):
        publish_example(env, name=f"skill-{number}", skill_path=str(number))
    search = {"name": "search_skills", "arguments": {"query": "skill"}}
    for method, params in (("resources/list", {}), ("skills/list", {}), ("tools/call", search)):
        told = asked(partial(METHODS[method], env, params))
        assert 0 < len(told) <= MOST_STATEMENTS, method
        # A table of the index of words is scanned for the words alone.
        if connection.vendor == "sqlite":
            steps = [step for one in told for step in reads_every_row(one)]
            assert [step for step in steps if "VIRTUAL TABLE INDEX" not in step] == []
