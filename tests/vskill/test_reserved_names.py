"""Names that an environment reserves: how the policy is written, and which names look like a reserved one."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st

from vskill.checks import check_environments
from vskill.environments import build_environment
from vskill.reserved_names import ReservedName, look_of

CORP = ReservedName("corp-*", ("git.corp.example/platform",))


def reserved(value: Any) -> tuple[ReservedName, ...]:
    return build_environment("one", {"policy": {"reserved_names": value}}, {}).policy.reserved_names


def test_a_pattern_has_one_owner_or_several() -> None:
    assert reserved({"corp-*": "Git.Corp.example/platform/", "acme": ["github.com/acme", "/acme"]}) == (
        ReservedName("corp-*", ("git.corp.example/platform",)),
        ReservedName("acme", ("github.com/acme", "/acme")),
    )


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (["corp-*"], "maps a pattern of names to its owner"),
        ({"Corp-*": "github.com/corp"}, "has the pattern 'Corp-\\*'"),
        ({"*": "github.com/corp"}, "at least one letter or digit"),
        ({"c*o*r*p*-*": "github.com/corp"}, "at most 4 stars"),
        ({"corp_": "github.com/corp"}, "has the pattern 'corp_'"),
        ({"corp-*": "https://github.com/corp"}, "without https:// and without a user"),
        ({"corp-*": "ada@github.com/corp"}, "without https:// and without a user"),
        ({"corp-*": "github.com"}, "no host/owner"),
        ({"corp-*": []}, "no list of them"),
        ({"corp-*": [7]}, "no list of them"),
    ],
)
def test_what_cannot_be_meant_is_refused(value: Any, said: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"'reserved_names' of 'one'.*{said}"):
        reserved(value)


def test_the_check_says_what_is_wrong_with_the_policy() -> None:
    wrong = {"default": {"policy": {"reserved_names": {"corp-*": "nobody"}}}}
    with override_settings(VSKILL_ENVIRONMENTS=wrong):
        (said,) = check_environments(None)
    assert said.id == "vskill.E001"
    assert "'corp-*' to 'nobody'" in said.msg


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("corp-login", id="the name"),
        pytest.param("CORP-Login", id="capitals"),
        pytest.param("Corp Login", id="a space"),
        pytest.param("corp_login", id="an underscore"),
        pytest.param("corp.login", id="a dot"),
        pytest.param("\u0441\u043er\u0440-login", id="Cyrillic letters"),
        pytest.param("c\u03bfrp-login", id="a Greek letter"),
        pytest.param("\uff43\uff4f\uff52\uff50-login", id="wide letters"),
        pytest.param("\U0001d41c\U0001d428\U0001d42b\U0001d429-login", id="letters of mathematics"),
        pytest.param("c\u00f6rp-login", id="an accent"),
        pytest.param("corp\u200b-login", id="a character that nobody sees"),
        pytest.param("co\u00adrp-login", id="a soft hyphen"),
        pytest.param("co\u202erp-login", id="a character that turns the direction"),
        pytest.param("corp\u2010login", id="another hyphen"),
        pytest.param("c0rp-login", id="a nought"),
        pytest.param("-corp-login-", id="hyphens at its ends"),
        pytest.param("\ua4da\ua4f3\ua4e3\ua4d1-tools", id="Lisu letters"),
        pytest.param("\u13df\u1d0f\u0280\u1d18-tools", id="a Cherokee letter and small capitals"),
        pytest.param("\u2ca5\u2c9f\u0433\u2ca3-tools", id="Coptic letters"),
        pytest.param("\U0001f172orp-tools", id="a letter in a square"),
        pytest.param("\u0188orp-tools", id="a letter with a hook"),
        pytest.param("co\ua75bp-tools", id="a letter of manuscripts"),
        pytest.param("c\u0966rp-tools", id="a nought of Devanagari"),
        pytest.param("c\u06f0rp-tools", id="a nought of Persian"),
        pytest.param("cor\u2374-tools", id="a sign that looks like a letter"),
        pytest.param("\u2605\u0188orp-tools", id="a star before it"),
    ],
)
def test_a_name_that_looks_reserved_is(name: str) -> None:
    assert CORP.covers(name)


@pytest.mark.parametrize(
    "name",
    ["corp", "corporate-login", "my-corp-login", "crop-login", "", "\u4e2d\u6587\u5de5\u5177-login", "d\u0188rp-tools"],
)
def test_other_names_are_free(name: str) -> None:
    assert not CORP.covers(name)


def test_a_star_may_stand_anywhere() -> None:
    assert ReservedName("*-official", ("github.com/acme",)).covers("pdf-official")
    assert ReservedName("acme", ("github.com/acme",)).covers("Acme")
    assert not ReservedName("acme", ("github.com/acme",)).covers("acme-tools")
    several = ReservedName("a*bc*d", ("github.com/acme",))
    assert all(several.covers(name) for name in ("abcd", "axbcbcxd"))
    assert not any(several.covers(name) for name in ("abxcd", "abc", "bcd"))
    # Many letters that may be any other make no long search.
    assert not ReservedName("a*b*c*d*e", ("github.com/acme",)).covers("\u0188" * 1000 + "z")


@given(st.text())
def test_what_a_name_looks_like_looks_like_itself(name: str) -> None:
    assert look_of(look_of(name)) == look_of(name)
