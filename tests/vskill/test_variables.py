"""Variables are read strictly: every fault is said at once, in one line that names the variable and what would do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from vskill.checks import check_names
from vskill.configuration import BASE_DIR, VARIABLES
from vskill.management.commands.settings import documents, example
from vskill.variables import InvalidSettings, read_variables, unknown_names

DECLARED = {variable.name: variable for variable in VARIABLES}


def value(name: str, text: str) -> object:
    return read_variables(VARIABLES, {name: text}, {})[name].value


def fault(name: str, text: str) -> str:
    with pytest.raises(InvalidSettings) as raised:
        value(name, text)
    return str(raised.value)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("1.5m", 90), ("5m", 300), ("2h", 7200), ("1d", 86400), ("500ms", 0.5)],
)
def test_a_time_has_a_unit_or_is_in_seconds(text: str, seconds: float) -> None:
    assert value("VSKILL_STUCK_THRESHOLD", text) == seconds


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("VSKILL_LIMIT_READS", "60/minute", "60/minute"),
        ("VSKILL_LIMIT_READS", "OFF", ""),
        ("VSKILL_TRUSTED_PROXIES", "10.0.0.5, 2001:db8::/32,UNIX", ["10.0.0.5/32", "2001:db8::/32", "unix"]),
        ("VSKILL_TRUSTED_PROXIES", "none", []),
        ("VSKILL_PROXY_HEADER", "Forwarded", "FORWARDED"),
    ],
)
def test_what_clients_may_do_is_a_rate_and_proxies_are_networks(name: str, text: str, found: object) -> None:
    assert value(name, text) == found


@pytest.mark.parametrize("name", ["VSKILL_LIMIT_READS", "VSKILL_TRUSTED_PROXIES"])
def test_what_is_written_is_read_as_the_same(name: str) -> None:
    kind, default = DECLARED[name].kind, DECLARED[name].default
    for shown in (default, kind.read("off" if kind.name == "rate" else "none")):
        assert kind.read(kind.write(shown)) == shown


@pytest.mark.parametrize("text", ["abc", "1e3", "5 minutes", "-5", "5m5", "inf", "nan", "0x10", "٣"])
def test_what_is_no_time_is_refused_with_what_would_be_one(text: str) -> None:
    told = fault("VSKILL_STUCK_THRESHOLD", text)
    assert told == f"VSKILL_STUCK_THRESHOLD: {text!r} is not a number of seconds; 90, 90s or 2m"


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("VSKILL_FETCH_SECONDS", "0", "'0' is not above 0"),
        ("PORT", "70000", "'70000' is not between 1 and 65535"),
        ("PORT", "0", "'0' is not between 1 and 65535"),
        ("VSKILL_KV_READ_WORKERS", "0", "'0' is not at least 1"),
        ("VSKILL_KV_READ_WORKERS", "4 # four", "'4 # four' is not a whole number; a comment has a line of its own"),
        ("VSKILL_KV_READ_WORKERS", "1_0", "'1_0' is not a whole number"),
        ("DEMO", "maybe", "'maybe' is neither on nor off; 1 or 0"),
        ("VSKILL_LOG_LEVEL", "loud", "'loud' is none of DEBUG, INFO, WARNING, ERROR, CRITICAL"),
        (
            "VSKILL_HOSTS",
            "https://skills.example.org",
            "'https://skills.example.org' is not a host name; "  # noqa: ISC004 - one text
            "write it without scheme, port and path: skills.example.org",
        ),
        (
            "VSKILL_HOSTS",
            "one.example,two.example:8000",
            "'two.example:8000' is not a host name; write it without scheme, port and path: two.example",
        ),
        (
            "VSKILL_PUBLIC_URL",
            "skills.example.org",
            "'skills.example.org' is not an address; https://skills.example.org",
        ),
        ("VSKILL_ENVIRONMENTS", "{}", "{} names nothing; leave the variable out for the default"),
        ("VSKILL_ENVIRONMENTS", '{"a": 1}', "the value of 'a' is not a JSON object"),
        *(
            (
                "VSKILL_LIMIT_READS",
                text,
                f"{text!r} is not a number in a second, minute, hour or day; 60/minute, or off",
            )
            for text in (
                "60",
                "0/minute",
                "-1/minute",
                "60/fortnight",
                "60 / minute",
                "1/second;5/minute",
                "no",
                "٣/day",
            )
        ),
        (
            "VSKILL_TRUSTED_PROXIES",
            "127.0.0.1,10.0.0.5/24",
            "'10.0.0.5/24' is not an address or a network; write the network as 10.0.0.0/24",
        ),
        *(
            (
                "VSKILL_TRUSTED_PROXIES",
                text,
                f"{text.strip()!r} is not an address or a network; 127.0.0.1, 10.0.0.0/8, ::1, unix or none",
            )
            for text in ("*", "proxy.example.org", "10.0.0.1:80")
        ),
        ("VSKILL_PROXY_HEADER", "X-Real-IP", "'X-Real-IP' is none of X-FORWARDED-FOR, FORWARDED"),
        ("VSKILL_QUEUE_BACKOFF", "10,soon", "'soon' is not a number of seconds; 90, 90s or 2m"),
        (
            "DATABASE_URL",
            "nonsense",
            "it is no database address; sqlite:///path or postgres://user:password@host:5432/name",
        ),
        (
            "DATABASE_URL",
            "sqlite://:memory:",
            "it names no file; processes cannot share a database in memory: sqlite:///path",
        ),
        (
            "DATABASE_URL",
            "postgres:///vskill",
            "it names no host or no database; postgres://user:password@host:5432/name",
        ),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_its_name_and_what_would_do(name: str, text: str, told: str) -> None:
    assert fault(name, text) == f"{name}: {told}"


def test_bad_json_says_where() -> None:
    assert fault("VSKILL_ENVIRONMENTS", '{"a": }').startswith(
        "VSKILL_ENVIRONMENTS: is not JSON: Expecting value: line 1"
    )


def test_the_password_of_a_database_is_in_no_fault() -> None:
    assert "secret" not in fault("DATABASE_URL", "mysql://user:secret@host/name")
    assert "secret" not in fault("VSKILL_DATABASES", '{"one": "mysql://user:secret@host/name"}')


def test_all_faults_are_said_at_once() -> None:
    with pytest.raises(InvalidSettings) as raised:
        read_variables(VARIABLES, {"PORT": "0", "DEMO": "x", "VSKILL_QUEUE_LEASE": "long"}, {})
    assert [line.partition(":")[0] for line in str(raised.value).splitlines()] == ["PORT", "DEMO", "VSKILL_QUEUE_LEASE"]


@pytest.mark.parametrize("name", DECLARED)
def test_an_empty_variable_is_one_that_is_not_set(name: str) -> None:
    assert value(name, "  ") == read_variables(VARIABLES, {}, {})[name].value


def test_a_level_and_a_switch_may_be_written_in_any_case() -> None:
    assert value("VSKILL_LOG_LEVEL", "debug") == "DEBUG"
    assert value("DEMO", "False") is False


def test_relative_paths_count_from_the_checkout() -> None:
    assert value("VSKILL_DATA_DIR", "./elsewhere") == BASE_DIR / "elsewhere"
    assert value("VSKILL_SOURCE_ROOTS", "one, /two") == [str(BASE_DIR / "one"), "/two"]
    database = value("DATABASE_URL", "sqlite:///./data/one.sqlite3")
    assert isinstance(database, dict)
    assert database["NAME"] == str(BASE_DIR / "data" / "one.sqlite3")


@pytest.mark.parametrize("line", [line for line in example().splitlines() if "=" in line])
def test_every_line_of_the_example_can_be_used_as_it_is(line: str) -> None:
    name, _, text = line.removeprefix("#").partition("=")
    read_variables(VARIABLES, {name: text}, {})


def test_a_misspelt_variable_is_named_with_the_nearest_known_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert unknown_names(VARIABLES, ["VSKILL_HOST", "PATH"], "VSKILL_") == {"VSKILL_HOST": "VSKILL_HOSTS"}
    assert check_names(None) == []
    monkeypatch.setenv("VSKILL_STUK_THRESHOLD", "5")
    [warning] = check_names(None)
    assert "VSKILL_STUK_THRESHOLD is set" in str(warning.msg)
    assert warning.hint == "Did you mean VSKILL_STUCK_THRESHOLD?"


def test_a_variable_that_an_environment_names_as_its_secret_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VSKILL_CORP_TOKEN", "x")
    assert [warning.id for warning in check_names(None)] == ["vskill.W001"]
    with override_settings(VSKILL_ENVIRONMENTS={"corp": {"secrets": {"corp": "VSKILL_CORP_TOKEN"}}, "other": {}}):
        assert check_names(None) == []


def test_a_proxy_that_holds_a_password_is_refused_without_repeating_it() -> None:
    with pytest.raises(InvalidSettings, match=r"a user and password are VSKILL_SOURCE_PROXY_LOGIN") as caught:
        read_variables(VARIABLES, {"VSKILL_SOURCE_PROXY": "http://reader:hush@proxy.example.org:3128"}, {})
    assert "hush" not in str(caught.value)


def test_the_documents_about_settings_are_current() -> None:
    call_command("settings", "--check")


def test_a_document_that_is_not_current_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = tmp_path / "settings.md"
    monkeypatch.setattr("vskill.management.commands.settings.documents", lambda: {old: "new"})
    with pytest.raises(CommandError, match=r"Not current: settings\.md"):
        call_command("settings", "--check")
    call_command("settings", "--write")
    assert old.read_text() == "new"


def test_the_readme_has_the_variables_that_matter_and_the_page_all_of_them() -> None:
    texts = {path.name: text for path, text in documents().items()}
    assert all(f"`{name}`" in texts["settings.md"] and f"#{name}=" in texts[".env.example"] for name in DECLARED)
    assert all(f"| `{one.name}` |" in texts["README.md"] for one in VARIABLES if one.matters)


def manage(tmp_path: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=BASE_DIR,
        env={"PATH": os.environ["PATH"], "VSKILL_DATA_DIR": str(tmp_path), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_command_ends_with_the_faults_and_no_traceback(tmp_path: Path) -> None:
    ended = manage(tmp_path, "check", PORT="70000", VSKILL_QUEUE_LEASE="abc")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == (
        "Nothing was done. These settings cannot be used:\n"
        "PORT: '70000' is not between 1 and 65535\n"
        "VSKILL_QUEUE_LEASE: 'abc' is not a number of seconds; 90, 90s or 2m\n"
    )


def test_a_data_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ended = manage(tmp_path, "check", VSKILL_DATA_DIR=str(tmp_path / "file" / "data"))
    assert ended.returncode == 1
    assert f"VSKILL_DATA_DIR: {tmp_path / 'file' / 'data'} cannot be written (Not a directory)" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_settings_in_force_are_shown_with_their_source_and_without_secrets(tmp_path: Path) -> None:
    shown = manage(
        tmp_path,
        "settings",
        VSKILL_STUCK_THRESHOLD="5m",
        VSKILL_SECRET_KEY="hush",
        DATABASE_URL="postgres://user:hush@host:5432/name",
    ).stdout
    assert "VSKILL_STUCK_THRESHOLD        300   (environment)" in shown
    assert "VSKILL_SECRET_KEY             (not shown)   (environment)" in shown
    assert "DATABASE_URL                  postgres://user@host:5432/name   (environment)" in shown
    assert "VSKILL_QUEUE_LEASE            90\n" in shown
    assert "hush" not in shown
