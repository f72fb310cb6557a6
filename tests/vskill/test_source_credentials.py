"""Credentials for repositories that ask for sign-in: what is read, and that no fault repeats a secret."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from vskill.environments import WorkerEnv, build_environment
from vskill.source_credentials import SourceCredential

SECRET = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"


def build(credentials: Any, secret: str = SECRET) -> WorkerEnv:
    options = {"policy": {"source_credentials": credentials}, "secrets": {"corp": "CORP_TOKEN"}}
    return build_environment("one", options, {"CORP_TOKEN": secret})


def test_a_token_and_a_password_are_read_with_their_places() -> None:
    env = build(
        {
            "Git.Corp.example:443": {"kind": "token", "secret": "corp"},
            "github.com/Acme/": {"kind": "basic", "user": "bot", "secret": "corp"},
            "[::1]:8443": {"kind": "token", "user": "oauth2", "secret": "corp"},
        }
    )
    assert env.policy.source_credentials == (
        SourceCredential("git.corp.example", "token", "x-access-token", "corp"),
        SourceCredential("github.com/Acme", "basic", "bot", "corp"),
        SourceCredential("[::1]:8443", "token", "oauth2", "corp"),
    )
    assert [(one.host, one.port) for one in env.policy.source_credentials] == [
        ("git.corp.example", None),
        ("github.com", None),
        ("::1", 8443),
    ]
    assert SECRET not in repr(env)


@pytest.mark.parametrize(
    ("credentials", "said"),
    [
        ([SECRET], "maps a host, or host/owner, to an object"),
        ({f"https://{SECRET}@git.example": {"kind": "token", "secret": "corp"}}, "has a key that is no host"),
        ({"https://git.example": {"kind": "token", "secret": "corp"}}, "has a key that is no host"),
        ({"git.example": SECRET}, "maps 'git.example' to something that is no object of texts"),
        ({"git.example": {"kind": "token", "secret": 7}}, "no object of texts"),
        ({"git.example": {"secret": "corp"}}, "gives 'git.example' no 'kind' that is known: token or basic"),
        ({"git.example": {"kind": SECRET, "secret": "corp"}}, "no 'kind' that is known"),
        (
            {"git.example": {"kind": "token", "token": SECRET}},
            "gives 'git.example' 1 unknown options; known: kind, secret",
        ),
        ({"git.example": {"kind": "basic", "secret": "corp"}}, "gives 'git.example' no 'user' that can be sent"),
        ({"git.example": {"kind": "basic", "user": f"a:{SECRET}", "secret": "corp"}}, "no 'user' that can be sent"),
        ({"git.example": {"kind": "token", "secret": SECRET}}, "(it has: corp); write the name of a secret there"),
        ({"git.example": {"kind": "token"}}, "not among the 'secrets' of the environment (it has: corp)"),
    ],
)
def test_what_cannot_be_meant_is_refused_without_repeating_a_value(credentials: Any, said: str) -> None:
    with pytest.raises(ImproperlyConfigured) as caught:
        build(credentials)
    assert said in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("secret", ["", "a\nX-Injected: 1", f"{SECRET}\n", "\x00"])
def test_a_secret_that_would_be_a_second_header_is_refused(secret: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="'corp', whose variable is empty or has a line break") as caught:
        build({"git.example": {"kind": "token", "secret": "corp"}}, secret)
    assert SECRET not in str(caught.value)
