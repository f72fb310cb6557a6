"""How `manage.py up` starts with other settings than the defaults, and how it refuses to start."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.processes import Instance, free_port, instance
from tests.end_to_end.web import address

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Instance]:
    port = str(free_port())
    variables = {"HOST": "127.0.0.1", "PORT": port, "DEMO": "0", "VSKILL_QUEUE_POLL_INTERVAL": "0.1"}
    with instance(tmp_path / "data", **variables) as made:
        yield made


def test_it_comes_up_where_only_a_public_name_is_served(installation: Instance) -> None:
    installation.variables["VSKILL_HOSTS"] = "skills.example.org"
    with installation.started("up") as up:
        up.until(lambda: "Ctrl-C ends it" in up.said())
        assert f"runs at http://skills.example.org:{installation.variables['PORT']}" in up.said()
        assert f"listens on {address(installation, '')}" in up.said()
        up.signal(signal.SIGTERM)
        assert up.ends() == 0


def test_it_names_the_public_url_where_it_is_set(installation: Instance) -> None:
    installation.variables |= {"VSKILL_HOSTS": "*", "VSKILL_PUBLIC_URL": "https://skills.example.org/"}
    with installation.started("up") as up:
        up.until(lambda: "Ctrl-C ends it" in up.said())
        said = up.said()
        assert "runs at https://skills.example.org\n" in said
        assert f"listens on {address(installation, '')}" in said
        assert "https://skills.example.org/submit" in said
        up.signal(signal.SIGTERM)
        assert up.ends() == 0


@pytest.mark.parametrize("port", ["0", "70000", "http"])
def test_a_port_that_is_none_is_refused_in_words(installation: Instance, port: str) -> None:
    with installation.started("up", "--port", port) as up:
        assert up.ends() == 2
        [last] = up.said().splitlines()[-1:]
        assert f"argument --port: '{port}' is not" in last
        assert "Traceback" not in up.said()


def test_every_database_that_an_environment_uses_gets_its_tables(installation: Instance) -> None:
    installation.variables |= {
        "VSKILL_DATABASES": json.dumps({"inside": f"sqlite:///{installation.data_dir / 'inside.sqlite3'}"}),
        "VSKILL_ENVIRONMENTS": json.dumps(
            {"public": {"hosts": ["127.0.0.1"]}, "internal": {"hosts": ["internal.example.org"], "database": "inside"}}
        ),
    }
    with installation.started("up") as up:
        # It asks for health in each environment, and the consumer shows its signs of life in the database of each.
        up.until(lambda: "Ctrl-C ends it" in up.said())
        up.signal(signal.SIGTERM)
        assert up.ends() == 0
    assert installation.manage("verify_store", "--environment", "internal").startswith("internal: nothing is wrong")
