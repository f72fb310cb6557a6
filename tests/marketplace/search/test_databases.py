"""Search in an environment on PostgreSQL beside one on SQLite, which is the default database."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.db import connection  # noqa: F401 - named by a mark

from tests.end_to_end.processes import Instance, instance

pytestmark = [
    pytest.mark.database,
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.skipif(
        "connection.vendor != 'postgresql'", reason="without PostgreSQL, both databases are of one kind"
    ),
]

# The last search is one with a filter that leaves more than few skills.
SEARCH = """
from marketplace.catalog import SkillFilters, list_skills
from marketplace.skills import filtered
from tests.marketplace.factories import publish_example
from vskill.environments import get_environment

for name in ("public", "internal"):
    env = get_environment(name)
    publish_example(env, name=f"pdf-of-{name}")
    found = [*list_skills(env, SkillFilters(query="pdf")).skills]
    filtered._FEW = 0
    found += [*list_skills(env, SkillFilters(query="pdf", capability="shell")).skills]
    print([one.slug for one in found])
"""


def test_an_environment_is_searched_as_its_own_database_needs_it(tmp_path: Path) -> None:
    environments: dict[str, dict[str, object]] = {
        "public": {"hosts": ["127.0.0.1"]},
        "internal": {"hosts": ["internal.example.org"], "database": "inside"},
    }
    with instance(tmp_path / "inside") as inside:
        variables = {
            "VSKILL_DATABASES": json.dumps({"inside": inside.database_url}),
            "VSKILL_ENVIRONMENTS": json.dumps(environments),
        }
        installation = Instance(tmp_path, f"sqlite:///{tmp_path / 'default.sqlite3'}", variables)
        installation.manage("migrate", "-v", "0")
        shown = installation.manage("shell", "-v", "0", "-c", SEARCH)
    assert shown.splitlines() == ["['pdf-of-public', 'pdf-of-public']", "['pdf-of-internal', 'pdf-of-internal']"]
