"""Addresses of repositories: one canonical spelling for each, and a clear refusal of the others."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submissions.source.errors import InvalidRepositoryURL
from submissions.source.urls import MAX_URL_LENGTH, RepositoryURL, SourcePolicy, normalise_repository_url

NOTHING_SPECIAL = SourcePolicy()
HELLO = RepositoryURL("https://github.com/acme/skills", "github.com", "acme", "skills")


@pytest.mark.parametrize(
    "spelling",
    [
        "https://github.com/acme/skills",
        "  https://github.com/acme/skills\n",
        "HTTPS://GitHub.com/acme/skills",
        "https://github.com/Acme/Skills",
        "https://github.com/acme/skills.git",
        "https://github.com/acme/skills.git/",
        "https://github.com/acme/skills/",
        "https://github.com//acme//skills",
        "https://www.github.com/acme/skills",
        "https://github.com:443/acme/skills",
        "https://github.com./acme/skills",
        "https://github.com/acme/skills?tab=readme#usage",
        "https://github.com/acme/%73kills",
        "github.com/acme/skills",
        "acme/skills",
        "acme/skills.git",
    ],
)
def test_every_spelling_of_a_repository_is_the_same_repository(spelling: str) -> None:
    assert normalise_repository_url(spelling, NOTHING_SPECIAL) == HELLO


@pytest.mark.parametrize(
    ("spelling", "url", "owner"),
    [
        ("https://gitlab.com/Group/sub/Project.git", "https://gitlab.com/Group/sub/Project", "Group/sub"),
        ("https://git.sr.ht/~a/b", "https://git.sr.ht/~a/b", "~a"),
        ("https://git.example.org:8443/a/b", "https://git.example.org:8443/a/b", "a"),
        ("https://münchen.example/a/b", "https://xn--mnchen-3ya.example/a/b", "a"),
    ],
)
def test_other_hosts_keep_case_groups_and_ports(spelling: str, url: str, owner: str) -> None:
    repository = normalise_repository_url(spelling, NOTHING_SPECIAL)
    assert (repository.url, repository.owner, repository.places) == (url, owner, ())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Enter the address"),
        ("hello", "not a repository address"),
        ("my skills", "not a repository address"),
        ("javascript:alert(1)", "not a repository address"),
        ("https://github.com", "no repository"),
        ("https://github.com/acme", "no repository"),
        ("https://github.com/acme/skills/issues/3", "Try https://github.com/acme/skills"),
        ("http://github.com/acme/skills", "replace http:// by https://"),
        ("ssh://[::1]/acme/skills", "https only, not ssh"),
        ("git@10.0.0.example:acme", "no repository"),
        ("git://github.com/acme/skills", "https only, not git"),
        ("ftp://github.com/acme/skills", "https only, not ftp"),
        ("ext::sh -c touch% /tmp/pwned", "transport helpers"),
        ("ext::https://github.com/acme/skills", "transport helpers"),
        ("fd::17/x", "transport helpers"),
        ("https://user:hunter2@github.com/acme/skills", "password or token"),
        ("https://github.com/../../etc/passwd", "no name"),
        ("https://github.com/acme/%2e%2e", "no name"),
        ("https://github.com/acme/a%2fb", "no name"),
        ("https://github.com/acme/a%00b", "no name"),
        ("https://github.com/acme/skills/tree/--upload-pack=x/y", "git would not accept"),
        ("https://github.com/acme/skills#--upload-pack=x", "branch, tag or commit"),
        ("https://github.com/acme/skills/tree/" + "a%2F" * 30 + "b", "after its repository"),
        ("https://github.com/acme/skills/tree/a%2F..%2Fb", "no name"),
        ("https://github.com/acme/ski\u202ells", "invisible"),
        ("https://github.com/acme/ski\x07lls", "control"),
        ("https://github.com\\@evil.example/acme/skills", "backslashes"),
        ("https://exa mple.org/a/b", "spaces"),
        ("https://:443/a/b", "no valid host"),
        ("https://-bad-.example/a/b", "no valid host"),
        ("https://github.com:99999/a/b", "not a valid address"),
        ("https://[::1/a/b", "not a valid address"),
        ("https://github.com/acme/" + "x" * MAX_URL_LENGTH, "longer than"),
        ("https://git.example.org" + "/x" * 30, "parts"),
        ("file:///etc", "folders that the operator allows"),
        ("file://host/etc", "names no host"),
    ],
)
def test_what_names_no_public_repository_is_refused_with_the_reason(text: str, words: str) -> None:
    with pytest.raises(InvalidRepositoryURL, match=words.replace("+", r"\+")) as caught:
        normalise_repository_url(text, NOTHING_SPECIAL)
    assert not caught.value.transient


def test_a_password_is_not_repeated_in_the_refusal() -> None:
    with pytest.raises(InvalidRepositoryURL) as caught:
        normalise_repository_url("https://user:hunter2@github.com/acme/skills", NOTHING_SPECIAL)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST",
        "localhost.",
        "foo.localhost",
        "intranet",
        "printer.local",
        "git.internal",
        "metadata.google.internal",
        "router.home.arpa",
        "127.0.0.1",
        "127.0.0.1.",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "0",
        "0.0.0.0",  # noqa: S104 - an address to refuse; nothing listens on it
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "2852039166",
        "100.64.0.1",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "127。0。0。1",  # ideographic full stops, which IDNA reads as dots
        "１２７.0.0.1",  # full-width digits, which IDNA reads as plain ones
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[2001:0:7f00:1::]",
        "[fe80::1]",
        "[fe80::1%25eth0]",
        "[fc00::1]",
        "[fec0::1]",
        "[ff02::1]",
        "[2001:db8::1]",
        "1.2.3.400",
    ],
)
def test_hosts_off_the_public_internet_are_refused_in_every_notation(host: str) -> None:
    with pytest.raises(InvalidRepositoryURL):
        normalise_repository_url(f"https://{host}/a/b", NOTHING_SPECIAL)


def test_public_address_literals_are_accepted() -> None:
    assert normalise_repository_url("https://8.8.8.8/a/b", NOTHING_SPECIAL).host == "8.8.8.8"
    assert normalise_repository_url("https://[2606:4700::1]:8443/a/b", NOTHING_SPECIAL).url == (
        "https://[2606:4700::1]:8443/a/b"
    )


def test_an_operator_can_allow_a_private_host_by_name_or_by_name_and_port() -> None:
    by_name = SourcePolicy(private_hosts=frozenset({"git.internal"}))
    by_port = SourcePolicy(private_hosts=frozenset({"127.0.0.1:8443"}))
    assert normalise_repository_url("https://git.internal:9/a/b", by_name).host == "git.internal"
    assert normalise_repository_url("https://127.0.0.1:8443/a/b", by_port).host == "127.0.0.1"
    with pytest.raises(InvalidRepositoryURL):
        normalise_repository_url("https://127.0.0.1:8444/a/b", by_port)


def test_local_repositories_are_accepted_below_the_allowed_folders_only(tmp_path: Path) -> None:
    allowed = tmp_path / "allowed"
    (allowed / "demo.git").mkdir(parents=True)
    (tmp_path / "secret.git").mkdir()
    (allowed / "way-out").symlink_to(tmp_path)
    policy = SourcePolicy(file_roots=(allowed,))

    repository = normalise_repository_url(f"file://{allowed}/demo.git/", policy)

    assert (repository.url, repository.name) == (f"file://{allowed}/demo", "demo")
    assert normalise_repository_url(f"file://localhost{allowed}/x/../demo", policy) == repository
    for outside in (allowed, allowed / "../secret.git", allowed / "way-out/secret.git", f"{allowed}/%2e%2e/secret.git"):
        with pytest.raises(InvalidRepositoryURL, match="folders that the operator allows"):
            normalise_repository_url(f"file://{outside}", policy)


@given(st.text(max_size=80) | st.from_regex(r"https?://[\w.%@:\[\]/-]{0,40}", fullmatch=True))
def test_any_text_gives_a_repository_that_normalises_to_itself_or_a_refusal(text: str) -> None:
    try:
        repository = normalise_repository_url(text, NOTHING_SPECIAL)
    except InvalidRepositoryURL:
        return
    again = normalise_repository_url(repository.url, NOTHING_SPECIAL)
    assert again.url == repository.url
    assert repository.url.startswith("https://")
