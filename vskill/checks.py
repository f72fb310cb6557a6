"""System checks: settings that contradict each other are refused at start-up."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as CheckWarning
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connections

from vskill.accounts.teams import WORDS, teams_of
from vskill.configuration import misspelt
from vskill.environments import WorkerEnv, all_environments
from vskill.models import Team


@register(Tags.compatibility)
def check_names(app_configs: Sequence[Any] | None, **_kwargs: Any) -> list[CheckMessage]:
    """Warn of variables that look like ours and that nothing reads, neither we nor an environment as its secret."""
    named = {str(variable) for options in settings.VSKILL_ENVIRONMENTS.values() for variable in _secrets_of(options)}
    return [
        CheckWarning(
            f"{name} is set, and nothing reads it.",
            hint=f"Did you mean {nearest}?" if nearest else "'manage.py settings' lists every variable.",
            id="vskill.W001",
        )
        for name, nearest in misspelt().items()
        if name not in named
    ]


def _secrets_of(options: Mapping[str, Any]) -> Collection[Any]:
    secrets = options.get("secrets")
    return secrets.values() if isinstance(secrets, Mapping) else ()


@register(Tags.compatibility)
def check_proxies(app_configs: Sequence[Any] | None, **_kwargs: Any) -> list[CheckMessage]:
    """Warn where uvicorn is told to believe everybody, so that any client could name itself."""
    if "*" not in os.environ.get("FORWARDED_ALLOW_IPS", ""):
        return []
    return [
        CheckWarning(
            "FORWARDED_ALLOW_IPS lets uvicorn believe anybody's X-Forwarded-For, unless it has --no-proxy-headers.",
            hint="Unset it, and name your proxies in VSKILL_TRUSTED_PROXIES.",
            id="vskill.W002",
        )
    ]


@register(Tags.compatibility)
def check_environments(app_configs: Sequence[Any] | None, **_kwargs: Any) -> list[CheckMessage]:
    """Report environments that cannot be built, share a host name, or use a database that is not configured."""
    try:
        environments = all_environments()
    except ImproperlyConfigured as error:
        return [Error(str(error), id="vskill.E001")]
    problems: list[CheckMessage] = []
    owners: dict[str, str] = {}
    for env in environments.values():
        if env.database not in settings.DATABASES:
            problems.append(
                Error(
                    f"Environment {env.name!r} uses the database {env.database!r}, which is not configured.",
                    hint="Name it in VSKILL_DATABASES, or leave 'database' out to use DATABASE_URL.",
                    id="vskill.E002",
                )
            )
        for host in env.hosts:
            if (owner := owners.setdefault(host, env.name)) != env.name:
                problems.append(
                    Error(
                        f"Environments {owner!r} and {env.name!r} both answer to the host {host!r}.",
                        hint="A host name chooses one environment: give it to one of them.",
                        id="vskill.E003",
                    )
                )
    return problems


@register(Tags.compatibility)
def check_mail(app_configs: Sequence[Any] | None, **_kwargs: Any) -> list[CheckMessage]:
    """Say what is missing where mails are to be sent: the address that they are from, and that of their links."""
    if not settings.MAIL_SERVER:
        if not settings.MAIL_FROM:
            return []
        return [
            CheckWarning(
                "VSKILL_EMAIL_FROM is set, and no mail is sent.", hint="Set VSKILL_EMAIL_URL as well.", id="vskill.W003"
            )
        ]
    problems: list[CheckMessage] = []
    if not settings.MAIL_FROM:
        problems.append(
            Error(
                "VSKILL_EMAIL_URL is set, and no address that mails are from.",
                hint="Set VSKILL_EMAIL_FROM, such as vskill@skills.example.org.",
                id="vskill.E007",
            )
        )
    try:
        without = [name for name, env in all_environments().items() if not env.public_url]
    except ImproperlyConfigured:
        without = []
    return problems + [
        Error(
            f"Mails of environment {name!r} would have links that lead nowhere.",
            hint="Set public_url of the environment.",
            id="vskill.E008",
        )
        for name in without
    ]


# Not among the checks that each command makes: it asks the database.
@register("audiences")
def check_audiences(app_configs: Sequence[Any] | None, **_kwargs: Any) -> list[CheckMessage]:
    """Warn of a policy that shows skills to a team that is not there; a database that is not prepared is let be."""
    try:
        environments = list(all_environments().values())
    except ImproperlyConfigured:
        return []
    return [problem for env in environments for problem in _unknown_teams(env)]


def _unknown_teams(env: WorkerEnv) -> Iterator[CheckMessage]:
    named = [(word, f"skills of {place}") for place, word in env.policy.audiences]
    if env.policy.source_credentials or env.policy.source_ssh_keys:
        named.append((env.policy.credential_audience, "skills that it reads with a credential or a key"))
    named = [(word, what) for word, what in named if word not in WORDS]
    if not named or not _has_database(Team.objects.db):
        return
    try:
        known = set(teams_of(env).values_list("name", flat=True))
    except DatabaseError:
        # Its tables are not made yet, or it is away: whatever needs it says so.
        return
    for word, what in named:
        if word not in known:
            yield CheckWarning(
                f"The policy of environment {env.name!r} shows {what} to the team {word!r}, which is not there: nobody "
                "submits any or sees them.",
                hint=f"'manage.py team create {word}' makes it; or name another audience in the policy.",
                id="vskill.W004",
            )


def _has_database(alias: str) -> bool:
    """Return whether asking a database makes none: SQLite would leave an empty file, of whoever runs the check."""
    place = str(connections[alias].settings_dict["NAME"])
    return connections[alias].vendor != "sqlite" or place.startswith("file:") or Path(place).is_file()


@register(Tags.compatibility)
def check_pool(app_configs: Sequence[Any] | None, **_kwargs: Any) -> list[CheckMessage]:
    """Report impossible numbers, and connection pools with fewer connections than there are database threads."""
    if min(settings.KV_READ_WORKERS, settings.KV_WRITE_WORKERS) < 1:
        return [Error("VSKILL_KV_READ_WORKERS and VSKILL_KV_WRITE_WORKERS are at least 1.", id="vskill.E005")]
    if settings.KV_READ_TIMEOUT <= 0:
        return [Error("VSKILL_KV_READ_TIMEOUT is a number of seconds above 0.", id="vskill.E006")]
    # Plus the thread that runs the request or the command.
    threads = settings.KV_READ_WORKERS + settings.KV_WRITE_WORKERS + 1
    return [
        Error(
            f"Database {alias!r} has a pool of {size} connections for {threads} threads; work would time out.",
            hint="Raise VSKILL_DATABASE_POOL_SIZE or lower VSKILL_KV_READ_WORKERS and VSKILL_KV_WRITE_WORKERS.",
            id="vskill.E004",
        )
        for alias, database in settings.DATABASES.items()
        if (size := _pool_size(database)) is not None and size < threads
    ]


def _pool_size(database: Mapping[str, Any]) -> int | None:
    """Return the maximum size of a database's connection pool, or ``None`` where it has no pool."""
    pool = database.get("OPTIONS", {}).get("pool")
    if not pool:
        return None
    chosen = pool if isinstance(pool, dict) else {}
    # The rule of psycopg_pool: max_size defaults to min_size, and that to 4.
    return int(chosen.get("max_size") or chosen.get("min_size", 4))
