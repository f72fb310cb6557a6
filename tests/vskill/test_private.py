"""What strangers do not get to see: cookies in clear text, files of the data directory, names of processes."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from vskill.private_files import keep_private
from vskill.public_hosts import is_public, literal_address


def settings_with(folder: Path, **variables: str) -> str:
    """Return what the settings of an installation in ``folder`` say about cookies, with these variables."""
    program = "from vskill import settings as s; print(s.SESSION_COOKIE_SECURE, s.CSRF_COOKIE_SECURE)"
    environment = {"PATH": os.environ["PATH"], "VSKILL_DATA_DIR": str(folder), **variables}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return run.stdout.strip()


def test_cookies_are_secure_when_any_public_address_is_https(tmp_path: Path) -> None:
    one = '{"a": {"hosts": ["a"], "public_url": "http://a"}, "b": {"hosts": ["b"], "public_url": "https://b"}}'
    assert settings_with(tmp_path) == "False False"
    assert settings_with(tmp_path, VSKILL_PUBLIC_URL="https://b") == "True True"
    assert settings_with(tmp_path, VSKILL_ENVIRONMENTS=one) == "True True"


def test_the_data_directory_and_the_database_are_for_their_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    environment = {"PATH": os.environ["PATH"], "VSKILL_DATA_DIR": str(folder)}
    subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], env=environment, check=True)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.glob("vskill.sqlite3*")}
    assert found
    assert set(found.values()) == {0o600}


def test_a_file_that_is_not_there_or_is_private_enough_is_left(tmp_path: Path) -> None:
    keep_private(tmp_path / "absent", 0o600)
    path = tmp_path / "file"
    path.touch(mode=0o400)
    keep_private(path, 0o600)
    assert stat.S_IMODE(path.stat().st_mode) == 0o400


@pytest.mark.django_db(transaction=True)
def test_only_staff_and_this_machine_read_the_names_of_processes(client: Client) -> None:
    def shown(**how: Any) -> bool:
        return "processes" in client.get("/healthz", **how).content.decode()

    assert shown(REMOTE_ADDR="127.0.0.1")
    assert shown(REMOTE_ADDR="::1")
    assert not shown(REMOTE_ADDR="203.0.113.9")
    assert not shown(REMOTE_ADDR="")
    assert not shown(REMOTE_ADDR="127.0.0.1", HTTP_X_FORWARDED_FOR="127.0.0.1")
    users = get_user_model().objects
    client.force_login(users.create_user("visitor"))
    assert not shown(REMOTE_ADDR="203.0.113.9")
    client.force_login(users.create_user("operator", is_staff=True))
    assert shown(REMOTE_ADDR="203.0.113.9")


@pytest.mark.django_db
def test_errors_below_the_api_have_the_form_of_its_dialect(client: Client) -> None:
    for path in ("/api/", "/api/v1/nothing", "/api/v2/x"):
        unknown = client.get(path)
        assert (unknown.status_code, unknown.headers["Content-Type"]) == (404, "text/plain; charset=utf-8")
    unknown = client.get("/api/v1/submissions/a/b")
    assert (unknown.status_code, unknown.json()["error"]) == (404, "not_found")
    for path in ("/api/v1/submissions", "/api/v1/submissions/sub_x"):
        refused = client.delete(path)
        assert (refused.status_code, refused.json()["error"]) == (405, "method_not_allowed")
        assert "GET" in refused.headers["Allow"]
    assert "<html" in client.get("/nothing").content.decode()


@pytest.mark.parametrize("host", ["192.0.0.8", "192.0.0.9", "192.88.99.1", "::ffff:192.88.99.1", "64:ff9b::c058:6301"])
def test_addresses_of_the_ietf_and_of_relays_are_not_public(host: str) -> None:
    address = literal_address(host)
    assert address is not None
    assert not is_public(address)
