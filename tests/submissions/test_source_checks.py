"""What private repositories are read with is looked at before anything starts."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from submissions.source_checks import check_sources, readable_by_others
from tests.submissions.source.https_host import CERTIFICATE

HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
TOKEN = "glpat-Qx8zT3kLm5vB2nWc"


def said(settings: Settings, monkeypatch: pytest.MonkeyPatch, secret: str = TOKEN, **policy: Any) -> list[str]:
    """Return the ids and texts of the problems with this policy."""
    monkeypatch.setenv("CORP_TOKEN", secret)
    monkeypatch.setattr("submissions.source_checks.BASE_DIR", Path("/nowhere"))
    settings.VSKILL_ENVIRONMENTS = {"corp": {"policy": policy, "secrets": {"corp": "CORP_TOKEN"}}}
    found = [f"{one.id} {one.msg}" for one in check_sources(None)]
    assert secret not in " ".join(found)
    return found


def credentials(place: str) -> dict[str, Any]:
    return {"source_credentials": {place: {"kind": "token", "secret": "corp"}}}


def test_a_credential_and_an_authority_that_can_be_used_are_no_problem(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    private: dict[str, Any] = {
        "source_private_hosts": ["git.corp", "10.0.0.7:8443"],
        "source_ca_file": str(CERTIFICATE),
    }
    for place in ("github.com/acme", "git.corp/team", "10.0.0.7:8443"):
        assert said(settings, monkeypatch, **credentials(place), **private) == []


@pytest.mark.parametrize("place", ["git.corp/team", "10.0.0.7", "intranet", "[::1]:8443", "a..b"])
def test_a_credential_for_a_host_that_is_not_allowed_is_reported(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    [problem] = said(settings, monkeypatch, **credentials(place), source_private_hosts=["10.0.0.7:8443"])
    assert problem.startswith(f"submissions.W002 The credential for {place!r} in environment 'corp' is never used")


@pytest.mark.parametrize(
    "secret", ["changeme", "<your-token>", "xxxxxxxxxxxx", "...", "short", "$CORP_GIT_TOKEN", "your-token-here"]
)
def test_a_secret_that_looks_like_a_placeholder_is_reported(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    [problem] = said(settings, monkeypatch, secret, **credentials("github.com/acme"))
    assert problem.startswith(
        "submissions.W003 The secret 'corp' for 'github.com/acme' in environment 'corp' looks like"
    )


def test_a_file_of_an_authority_that_cannot_be_used_is_reported(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    [absent] = said(settings, monkeypatch, source_ca_file=str(tmp_path / "absent.pem"))
    assert (
        absent == "submissions.W005 The source_ca_file of environment 'corp' cannot be used: No such file or directory."
    )
    (tmp_path / "empty.pem").write_text("no certificate\n")
    [empty] = said(settings, monkeypatch, source_ca_file=str(tmp_path / "empty.pem"))
    assert empty.endswith("cannot be used: it has no certificate.")


def test_files_of_keys_that_cannot_be_read_or_that_others_may_read_are_reported(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    key, known = tmp_path / "deploy", tmp_path / "known_hosts"
    keys: dict[str, Any] = {
        "source_ssh_keys": {"git.corp/team": {"key_file": str(key), "known_hosts_file": str(known)}}
    }
    problems = said(settings, monkeypatch, **keys)
    assert [problem.split()[0] for problem in problems] == ["submissions.W002", "submissions.W008", "submissions.W008"]
    keys |= {"source_private_hosts": ["git.corp"]}
    for path, mode in ((key, 0o644), (known, 0o644)):
        path.write_text(f"git.corp {HOST_KEY}\n")
        path.chmod(mode)
    [readable] = said(settings, monkeypatch, **keys)
    assert readable.startswith(f"submissions.W004 Other accounts of this machine may read or write {key}")
    key.chmod(0o600)
    assert said(settings, monkeypatch, **keys) == []
    assert said(settings, monkeypatch, **keys, source_proxy="http://proxy.example.org:3128") == []
    monkeypatch.setattr("submissions.source_checks.SEARCH_PATH", str(tmp_path))
    [missing] = said(settings, monkeypatch, **keys)
    assert missing == "submissions.W006 Environment 'corp' has keys for ssh, and ssh is not installed."


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
@pytest.mark.parametrize(
    ("port", "pinned"),
    [(22, "git.corp"), (2222, "[git.corp]:2222"), (22, "*.corp"), (22, "hashed")],
)
def test_a_file_of_known_hosts_without_a_line_for_its_host_is_reported(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, port: int, pinned: str
) -> None:
    key, known = tmp_path / "deploy", tmp_path / "known_hosts"
    key.touch(mode=0o600)
    files = {"key_file": str(key), "known_hosts_file": str(known), "port": port}
    keys: dict[str, Any] = {"source_ssh_keys": {"git.corp/team": files}, "source_private_hosts": ["git.corp"]}
    named = "git.corp" if port == 22 else "[git.corp]:2222"
    for others in ("", f"git.example.org {HOST_KEY}\n[git.corp]:2223 {HOST_KEY}\n"):
        known.write_text(others)
        [absent] = said(settings, monkeypatch, **keys)
        assert absent.startswith(f"submissions.W010 {known} has no line for {named}")
    known.write_text(f"{'git.corp' if pinned == 'hashed' else pinned} {HOST_KEY}\n")
    if pinned == "hashed":
        subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(known)], check=True, capture_output=True)
        assert "git.corp" not in known.read_text()
    assert said(settings, monkeypatch, **keys) == []


@pytest.mark.parametrize(("mode", "ids"), [(0o600, []), (0o640, ["submissions.W004"]), (0o604, ["submissions.W004"])])
def test_a_file_of_secrets_that_others_may_read_is_reported(tmp_path: Path, mode: int, ids: list[str]) -> None:
    (tmp_path / ".env").write_text("CORP_TOKEN=x\n")
    (tmp_path / ".env").chmod(mode)
    assert [one.id for one in readable_by_others(tmp_path / ".env")] == ids
    assert readable_by_others(tmp_path / "absent") == []
