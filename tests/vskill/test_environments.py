"""Environments are read from settings, found by name and by host, and keep their secrets to themselves."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from vskill.environments import (
    Policy,
    SecretMissing,
    UnknownEnvironment,
    WorkerEnv,
    all_environments,
    build_environment,
    environment_for_host,
    get_environment,
)

TWO = {
    "public": {"hosts": ["Skills.Example.com", "[::1]"], "public_url": "https://skills.example.com/"},
    "internal": {
        "hosts": ["*"],
        "database": "other",
        "queue": "slow",
        "policy": {"trusted_owners": ["git.corp/tools"]},
    },
}


def build(**options: Any) -> WorkerEnv:
    return build_environment("one", options, {"TOKEN": "hush"})


def test_environments_stand_in_the_order_of_the_settings() -> None:
    with override_settings(VSKILL_ENVIRONMENTS=TWO):
        assert list(all_environments()) == ["public", "internal"]
        internal = get_environment("internal")
    assert (internal.database, internal.queue) == ("other", "slow")
    assert internal.policy == Policy(trusted_owners=("git.corp/tools",))


def test_whether_trusted_owners_are_scanned_is_true_or_false_and_nothing_else() -> None:
    assert build().policy.scan_trusted_owners
    assert not build(policy={"scan_trusted_owners": False}).policy.scan_trusted_owners
    with pytest.raises(ImproperlyConfigured, match="'scan_trusted_owners' of 'one' is true or false; it was 'false'"):
        build(policy={"scan_trusted_owners": "false"})


def test_settings_that_change_are_read_again() -> None:
    before = all_environments()
    with override_settings(VSKILL_ENVIRONMENTS=TWO):
        assert all_environments() != before
    assert all_environments() == before


def test_an_address_has_no_slash_at_its_end() -> None:
    assert build(public_url="https://skills.example.com/").public_url == "https://skills.example.com"


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("skills.example.com", "public"),
        ("SKILLS.example.com", "public"),
        ("skills.example.com:8443", "public"),
        ("skills.example.com.", "public"),
        ("[::1]", "public"),
        ("[::1]:8000", "public"),
        ("elsewhere.example.com", "internal"),
        ("", "internal"),
    ],
)
def test_a_host_chooses_its_environment_and_an_exact_name_comes_before_any(host: str, name: str) -> None:
    with override_settings(VSKILL_ENVIRONMENTS=TWO):
        assert environment_for_host(host).name == name


def test_a_host_that_nobody_serves_is_unknown() -> None:
    with override_settings(VSKILL_ENVIRONMENTS={"public": TWO["public"]}), pytest.raises(UnknownEnvironment) as caught:
        environment_for_host("evil.example.com:80")
    assert "'evil.example.com'" in str(caught.value)
    assert caught.value.code == "unknown_environment"


def test_a_name_that_is_not_configured_is_answered_with_those_that_are() -> None:
    with override_settings(VSKILL_ENVIRONMENTS=TWO), pytest.raises(UnknownEnvironment, match="public, internal"):
        get_environment("staging")


def test_a_secret_comes_from_the_variable_that_is_named_for_it() -> None:
    env = build(secrets={"git_token": "TOKEN"})
    assert env.secret("git_token") == "hush"
    with pytest.raises(SecretMissing, match="'other'"):
        env.secret("other")


def test_a_secret_never_shows() -> None:
    env = build(secrets={"git_token": "TOKEN"})
    assert "hush" not in repr(env)
    assert "hush" not in str(env)


def test_an_environment_cannot_be_changed() -> None:
    env = build(secrets={"git_token": "TOKEN"})
    with pytest.raises(FrozenInstanceError):
        env.name = "two"  # type: ignore[misc]  # that it is refused is what is tested
    with pytest.raises(TypeError):
        env.secrets["more"] = "x"  # type: ignore[index]  # as above


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"host": ["a"]}, "unknown options ['host']"),
        ({"policy": {"trust": []}}, "unknown policies ['trust']"),
        ({"secrets": {"git_token": "ABSENT"}}, "needs the variable ABSENT"),
        ({"hosts": "skills.example.com"}, "'hosts' of 'one' is a list"),
        ({"policy": {"source_file_roots": "/srv"}}, "'source_file_roots' of 'one' is a list"),
        ({"policy": {"source_ca_file": ["/corp.pem"]}}, "'source_ca_file' of 'one' is a text; it was ['/corp.pem']"),
        ({"policy": {"queue_weights": ["a.example/b"]}}, "'queue_weights' of 'one' maps host/owner to a number"),
        ({"policy": {"queue_weights": {"a.example/b": 0}}}, "a number from 0.01 to 100; it was {'a.example/b': 0}"),
        ({"policy": {"queue_weights": {"a.example/b": True}}}, "a number from 0.01 to 100"),
        ({"policy": {"queue_weights": {"a.example/b": 101}}}, "a number from 0.01 to 100"),
    ],
    ids=[
        "option",
        "policy",
        "secret",
        "hosts as a text",
        "roots as a text",
        "authority as a list",
        "weights as a list",
        "no weight at all",
        "a weight that is no number",
        "too high a weight",
    ],
)
def test_options_that_cannot_be_meant_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ImproperlyConfigured) as caught:
        build(**options)
    assert said in str(caught.value)


def test_weights_of_publishers_are_numbers_by_owner() -> None:
    weights = {"git.corp/tools": 4, "github.com/Acme": 0.5}
    assert build(policy={"queue_weights": weights}).policy.queue_weights == tuple(weights.items())


def test_the_file_of_an_authority_is_a_path_and_no_list_of_its_letters() -> None:
    assert build(policy={"source_ca_file": "/etc/ssl/corp.pem"}).policy.source_ca_file == "/etc/ssl/corp.pem"


@pytest.mark.parametrize("name", ["", "a" * 65, "Ä", "a b", "a/b", "a\0", "a\n"])
def test_a_name_that_no_column_or_log_would_hold_is_refused(name: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="is no name"):
        build_environment(name, {}, {})


@pytest.mark.parametrize("host", ["https://skills.example.org", "skills.example.org:8000", "skills example"])
def test_a_host_with_a_scheme_or_a_port_is_refused_with_what_would_do(host: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"'hosts' of 'default': .* is not a host name"):
        build_environment("default", {"hosts": [host]}, {})


@pytest.mark.parametrize("rewrites", [["https://a/", "https://b/"], [["https://a/"]], [["https://a/", 1]]])
def test_rewrites_that_are_no_pairs_are_refused_at_the_start_and_not_in_use(rewrites: list[object]) -> None:
    with pytest.raises(ImproperlyConfigured, match="list of pairs of URL prefixes"):
        build_environment("default", {"policy": {"source_rewrites": rewrites}}, {})


def test_private_hosts_are_compared_in_lower_case() -> None:
    env = build_environment("default", {"policy": {"source_private_hosts": ["Git.Corp.Example:8443"]}}, {})
    assert env.policy.source_private_hosts == ("git.corp.example:8443",)
