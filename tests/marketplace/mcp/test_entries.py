"""What MCP says of skills whose front matter its authors wrote to break it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from tests.marketplace.factories import publish_example
from vskill.environments import WorkerEnv

# Intake takes each as text; a YAML loader makes values of them, and raises errors of its own.
HOSTILE = ("a: !!bool x", 'a: !!int ""', f"a: 1:{':'.join(['0'] * 200)}.0", "a: !!timestamp x", "? [a]\n: b")


@pytest.mark.django_db(transaction=True)
def test_a_front_matter_that_cannot_be_read_leaves_the_list_to_the_others(env: WorkerEnv, client: Client) -> None:
    publish_example(env)
    for number, line in enumerate(HOSTILE):
        text = f"---\nname: hostile-{number}\ndescription: Hello.\n{line}\n---\n"
        publish_example(env, name=f"hostile-{number}", files={"SKILL.md": text}, repo_url=f"https://e.org/a/{number}")
    message = {"jsonrpc": "2.0", "id": 1, "method": "skills/list", "params": {}}
    answer: Any = client.post("/mcp", json.dumps(message), content_type="application/json")
    assert answer.status_code == 200
    told = json.loads(answer.content)["result"]["skills"]
    assert "hello-skill" in {one["frontmatter"]["name"] for one in told}
