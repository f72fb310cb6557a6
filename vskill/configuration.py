"""The variables of vskill: name, kind, default, bounds and a sentence, each declared once.

docs/settings.md, the short table of the README and .env.example are written from here by ``manage.py settings``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import environ

from vskill.access_variables import ACCESS_VARIABLES
from vskill.client_kinds import NETWORKS, RATE
from vskill.engine_variables import ENGINE_VARIABLES, SCAN_SECRET
from vskill.reference_variables import REFERENCE_VARIABLES
from vskill.signing_variables import SIGNING_VARIABLES
from vskill.source_variables import SOURCE_VARIABLES
from vskill.variable_kinds import (
    HOSTS,
    SWITCH,
    TEXT,
    URL,
    choice,
    database_from,
    databases_from,
    duration,
    durations,
    integer,
    json_object,
    path_from,
    paths_from,
)
from vskill.variables import Setting, Variable, grouped, read_variables, unknown_names
from vskill.visitor_variables import VISITOR_VARIABLES

BASE_DIR: Final = Path(__file__).resolve().parent.parent
ANY_ADDRESS: Final = ("0.0.0.0", "::")  # noqa: S104 - compared with, never bound
PREFIX: Final = "VSKILL_"
# Read by the tests and by tools beside the product, so that they are not called unknown.
KNOWN_ELSEWHERE: Final = frozenset({"VSKILL_TEST_DATA_DIR", "VSKILL_EARLIER_RUNS"})


def _own_hosts(values: Mapping[str, Any]) -> list[str]:
    own = [] if values["HOST"] in ANY_ADDRESS else [values["HOST"]]
    return list(dict.fromkeys(["127.0.0.1", "localhost", "[::1]", *own]))


def _own_url(values: Mapping[str, Any]) -> str:
    host = "127.0.0.1" if values["HOST"] in ANY_ADDRESS else values["HOST"]
    return f"http://{f'[{host}]' if ':' in host else host}:{values['PORT']}"


def _own_database(values: Mapping[str, Any]) -> dict[str, Any]:
    return database_from(BASE_DIR).read(f"sqlite:///{values['VSKILL_DATA_DIR'] / 'vskill.sqlite3'}")  # type: ignore[no-any-return]


def _one_environment(values: Mapping[str, Any]) -> dict[str, Any]:
    roots = [*values["VSKILL_SOURCE_ROOTS"], str(values["VSKILL_DATA_DIR"] / "demo")]
    policy = {"source_file_roots": roots, "external_scanners": values["VSKILL_EXTERNAL_SCANNERS"]}
    named = {"hosts": values["VSKILL_HOSTS"], "public_url": values["VSKILL_PUBLIC_URL"], "policy": policy}
    return {"default": {**named, "secrets": {"external_scans": SCAN_SECRET} if values[SCAN_SECRET] else {}}}


VARIABLES: Final[tuple[Variable, ...]] = (
    *grouped(
        "Where it is reached",
        Variable("HOST", TEXT, "127.0.0.1", "address on which the web server listens", matters=True),
        Variable("PORT", integer(minimum=1, maximum=65535), 8000, "port on which the web server listens", matters=True),
        Variable(
            "VSKILL_PUBLIC_URL",
            URL,
            _own_url,
            "the address that visitors use; install lines are built from it",
            shown="http://HOST:PORT",
            example="https://skills.example.org",
            matters=True,
        ),
        Variable(
            "VSKILL_HOSTS",
            HOSTS,
            _own_hosts,
            "host names that are answered, separated by commas, without scheme and port",
            shown="loopback names and HOST",
            example="skills.example.org",
            matters=True,
        ),
        Variable(
            "VSKILL_SOURCE_URL",
            URL,
            "",
            "where the source of your copy of this program is; shown at the foot of pages",
            example="https://git.example.org/team/vskill",
        ),
    ),
    *grouped(
        "What it keeps",
        Variable(
            "VSKILL_DATA_DIR",
            path_from(BASE_DIR),
            BASE_DIR / "data",
            "directory of the SQLite database, the secret key, the demo and the scratch folders of fetches",
            shown="data",
            example="./data",
            matters=True,
        ),
        Variable(
            "DATABASE_URL",
            database_from(BASE_DIR),
            _own_database,
            "`postgres://user:password@host:5432/name` for PostgreSQL",
            shown="SQLite in the data directory",
            example="postgres://vskill:PASSWORD@127.0.0.1:5432/vskill",
            matters=True,
        ),
        Variable(
            "VSKILL_DATABASES",
            databases_from(BASE_DIR),
            {},
            "JSON: more databases by alias, for environments that name one",
            shown="{}",
            example='{"internal": "postgres://vskill:PASSWORD@127.0.0.1:5432/internal"}',
        ),
        Variable(
            "VSKILL_DATABASE_POOL_SIZE", integer(minimum=1), 16, "connections of a process to each PostgreSQL database"
        ),
        Variable(
            "VSKILL_SECRET_KEY",
            TEXT,
            "",
            "signs sessions and forms; processes on several machines need the same one",
            shown="random, kept in the data directory",
            matters=True,
            secret=True,
        ),
        Variable("DEMO", SWITCH, True, "load the demo on the first start", matters=True),
    ),
    *ACCESS_VARIABLES,
    *ENGINE_VARIABLES,
    *SOURCE_VARIABLES,
    *grouped(
        "What it accepts",
        Variable(
            "VSKILL_SOURCE_ROOTS",
            paths_from(BASE_DIR),
            [],
            "directories below which `file://` repositories are accepted, separated by commas",
            shown="none",
            example="/srv/git",
            matters=True,
        ),
        Variable(
            "VSKILL_ENVIRONMENTS",
            json_object(of_objects=True, not_empty=True),
            _one_environment,
            "JSON: several environments in one process, see [environments.md](environments.md); replaces "
            "`VSKILL_HOSTS`, `VSKILL_PUBLIC_URL` and `VSKILL_SOURCE_ROOTS`",
            shown="one, named `default`",
            example='{"default": {"hosts": ["skills.example.org"], "public_url": "https://skills.example.org"}}',
            matters=True,
        ),
        Variable("VSKILL_SCAN_PROCESSES", integer(minimum=1), 2, "scans of a consumer that run at once", matters=True),
    ),
    *grouped(
        "What one client may do",
        Variable(
            "VSKILL_TRUSTED_PROXIES",
            NETWORKS,
            ["127.0.0.0/8", "::1/128", "unix"],
            "addresses and networks of proxies, separated by commas, whose word is taken for the address of a client; "
            "`unix` is whoever connects over a unix socket, and `none` trusts nobody",
            example="127.0.0.0/8,::1,unix,10.0.0.5",
            matters=True,
        ),
        Variable(
            "VSKILL_PROXY_HEADER",
            choice("X-FORWARDED-FOR", "FORWARDED"),
            "X-FORWARDED-FOR",
            "the header in which those proxies write that address; the other one is not read",
        ),
        Variable("VSKILL_LIMIT_SUBMISSIONS", RATE, "120/minute", "submissions by form and API; `off` for no limit"),
        Variable(
            "VSKILL_LIMIT_READS",
            RATE,
            "3000/minute",
            "searches, lists, pages and whatever else is read; `off` for no limit",
        ),
        Variable("VSKILL_LIMIT_DOWNLOADS", RATE, "2000/minute", "archives and single files; `off` for no limit"),
        Variable("VSKILL_LIMIT_UPLOADS", RATE, "1500/minute", "files that `clawhub` uploads; `off` for no limit"),
        Variable(
            "VSKILL_LIMIT_LOGINS",
            RATE,
            "30/minute",
            "attempts to log in to the admin; `off` for no limit, but failures slow down further ones in any case",
        ),
    ),
    *grouped(
        "Reading and writing entries",
        Variable("VSKILL_KV_READ_WORKERS", integer(minimum=1), 4, "threads of a process that read from the database"),
        Variable("VSKILL_KV_WRITE_WORKERS", integer(minimum=1), 4, "threads of a process that write to the database"),
        Variable("VSKILL_KV_READ_TIMEOUT", duration(above=0), 30.0, "time after which a read counts as timed out"),
    ),
    *VISITOR_VARIABLES,
    *REFERENCE_VARIABLES,
    *SIGNING_VARIABLES,
    *grouped(
        "The queue",
        Variable("VSKILL_QUEUE_MAX_BATCH_SIZE", integer(minimum=1), 3, "messages of a batch"),
        Variable("VSKILL_QUEUE_MAX_CONCURRENCY", integer(minimum=1), 10, "batches that a consumer has in flight"),
        Variable(
            "VSKILL_QUEUE_MAX_BATCH_WAIT",
            duration(minimum=0),
            5.0,
            "time that a partial batch waits to be filled while others are in flight",
        ),
        Variable(
            "VSKILL_QUEUE_POLL_INTERVAL",
            duration(above=0),
            1.0,
            "time between looks into an empty queue; new messages are also noticed when they are committed",
        ),
        Variable(
            "VSKILL_QUEUE_LEASE",
            duration(above=0),
            90.0,
            "time for which a message is leased; at least three times the heartbeat",
        ),
        Variable("VSKILL_QUEUE_HEARTBEAT", duration(above=0), 15.0, "time between renewals of a lease"),
        Variable(
            "VSKILL_QUEUE_MESSAGE_LIMIT",
            duration(above=0),
            300.0,
            "working time that one message may take; waiting for a slot to fetch or scan is not counted",
        ),
        Variable(
            "VSKILL_QUEUE_SHUTDOWN_GRACE",
            duration(minimum=0),
            25.0,
            "time in which a consumer that is told to stop finishes its work",
        ),
        Variable(
            "VSKILL_QUEUE_BACKOFF",
            durations(minimum=0),
            [10.0, 60.0, 300.0],
            "times after which an attempt that failed is repeated; one more failure parks the message",
        ),
        Variable(
            "VSKILL_QUEUE_MAX_CRASHES", integer(minimum=1), 3, "crashes of its worker after which a message is parked"
        ),
    ),
    *grouped(
        "Recovery",
        Variable(
            "VSKILL_STUCK_THRESHOLD", duration(above=0), 300.0, "time without a move after which a submission is stuck"
        ),
        Variable(
            "VSKILL_RECOVERY_INTERVAL",
            duration(above=0),
            60.0,
            "time between recoveries by the built-in scheduler; with cron, the interval of its line",
        ),
        Variable(
            "VSKILL_RECOVERY_MAX_ATTEMPTS",
            integer(minimum=0),
            3,
            "recoveries after which a submission is held for a person",
        ),
    ),
    *grouped(
        "Logs and debugging",
        Variable(
            "VSKILL_LOG_LEVEL",
            choice("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
            "INFO",
            "how much is logged on standard error: debug, info, warning, error or critical",
            matters=True,
        ),
        Variable("VSKILL_DEBUG", SWITCH, False, "Django's debug pages; never on a server that others can reach"),
    ),
)


@cache
def load() -> Mapping[str, Setting]:
    """Return every variable with its value in this process; raise ``InvalidSettings`` with all faults at once.

    A line of the file ``.env`` beside manage.py counts where the variable is not set.
    """
    given = frozenset(os.environ)
    environ.Env.read_env(BASE_DIR / ".env", overwrite=False)
    sources = {name: "environment" if name in given else ".env" for name in os.environ}
    return read_variables(VARIABLES, os.environ, sources)


def misspelt() -> dict[str, str]:
    """Return the variables of this process that look like ours and are read by nothing, with the nearest known name."""
    return unknown_names(VARIABLES, os.environ.keys() - KNOWN_ELSEWHERE, PREFIX)
