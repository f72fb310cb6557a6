"""System checks of what private repositories are read with: secrets, files of authorities, hosts."""

from __future__ import annotations

import os
import re
import shutil
import ssl
import stat
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from django.core.checks import CheckMessage, Tags, register
from django.core.checks import Warning as CheckWarning
from django.core.exceptions import ImproperlyConfigured

from submissions.source.fetching import source_policy
from submissions.source.git_process import SEARCH_PATH
from submissions.source.hosts import normalise_host
from submissions.source.ssh import SSH_PORT
from vskill.configuration import BASE_DIR
from vskill.environments import WorkerEnv, all_environments
from vskill.public_hosts import refuse_private_name
from vskill.source_ssh_keys import SourceSshKey
from vskill.webhook_secrets import WEBHOOKS

# What stands in examples, and what nobody's token is.
_PLACEHOLDER: Final = re.compile(
    r"<.*>|\[.*\]|\$.*|\.{3,}|\*+|x+|(your|my|the)[-_ ].*|.*(changeme|change-me|placeholder|example|todo).*"
    r"|token|password|secret|test",
    re.IGNORECASE,
)
_SHORTEST: Final = 8
_SHORTEST_OF_WEBHOOKS: Final = 16
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


@register(Tags.compatibility)
def check_sources(app_configs: Sequence[Any] | None, **_kwargs: Any) -> list[CheckMessage]:
    """Report what repositories that ask for sign-in could not be read with, or others could read."""
    try:
        environments = list(all_environments().values())
    except ImproperlyConfigured:
        # Reported by the check of the environments themselves.
        return []
    of_each = (_authority, _credentials, _keys, _webhooks)
    problems = [problem for env in environments for check in of_each for problem in check(env)]
    if any(env.secrets for env in environments):
        problems += readable_by_others(BASE_DIR / ".env")
    return problems


def _authority(env: WorkerEnv) -> Iterator[CheckMessage]:
    path = env.policy.source_ca_file
    if not path:
        return
    try:
        ssl.create_default_context().load_verify_locations(path)
    except OSError as error:
        reason = "it has no certificate" if isinstance(error, ssl.SSLError) else str(error.strerror)
        yield CheckWarning(
            f"The source_ca_file of environment {env.name!r} cannot be used: {reason}.",
            hint=f"{path} is a file with certificates in PEM that the account of the server can read.",
            id="submissions.W005",
        )


def _credentials(env: WorkerEnv) -> Iterator[CheckMessage]:
    policy = source_policy(env)
    for one in env.policy.source_credentials:
        where = f"{one.place!r} in environment {env.name!r}"
        host = normalise_host(f"[{one.host}]" if ":" in one.host else one.host)
        reason = "it is no name of a host" if host is None else refuse_private_name(host)
        if host != one.host or (reason is not None and not policy.allows_private(host, one.port)):
            yield CheckWarning(
                f"The credential for {where} is never used, because its host is not allowed: "
                f"{reason or f'it is written {host}'}.",
                hint="Name a host of this network in source_private_hosts as well.",
                id="submissions.W002",
            )
        secret = env.secret(one.secret)
        if len(secret) < _SHORTEST or _PLACEHOLDER.fullmatch(secret):
            yield CheckWarning(
                f"The secret {one.secret!r} for {where} looks like a placeholder.",
                hint="Put the token or the password itself into its variable.",
                id="submissions.W003",
            )


def _keys(env: WorkerEnv) -> Iterator[CheckMessage]:
    keys = env.policy.source_ssh_keys
    policy = source_policy(env)
    if keys and shutil.which("ssh", path=SEARCH_PATH) is None:
        yield CheckWarning(
            f"Environment {env.name!r} has keys for ssh, and ssh is not installed.",
            hint="Install openssh-client.",
            id="submissions.W006",
        )
    for one in keys:
        host = one.place.split("/", maxsplit=1)[0]
        reason = refuse_private_name(host)
        if reason is not None and not policy.allows_private(host, one.port):
            yield CheckWarning(
                f"The key for {one.place!r} in environment {env.name!r} is never used, because its host is not "
                f"allowed: {reason}.",
                hint="Name a host of this network in source_private_hosts as well.",
                id="submissions.W002",
            )
        for path in (one.key_file, one.known_hosts_file):
            if not os.access(path, os.R_OK) or not Path(path).is_file():
                yield CheckWarning(
                    f"{path}, which environment {env.name!r} needs for {one.place!r}, cannot be read.",
                    hint="It is a file that the account of the server can read.",
                    id="submissions.W008",
                )
        yield from readable_by_others(Path(one.key_file))
        yield from _pinned(env, one)


def _pinned(env: WorkerEnv, key: SourceSshKey) -> Iterator[CheckMessage]:
    """Warn of a key whose file of known hosts has no line for its host, also one with hashed names."""
    program = shutil.which("ssh-keygen", path=SEARCH_PATH)
    if program is None or not os.access(key.known_hosts_file, os.R_OK):
        return
    host = key.place.split("/", maxsplit=1)[0]
    named = host if key.port == SSH_PORT else f"[{host}]:{key.port}"
    found = subprocess.run([program, "-F", named, "-f", key.known_hosts_file], check=False, capture_output=True)
    # It prints nothing where there is none; its status is 255 for an empty file.
    if not found.stdout.strip():
        yield CheckWarning(
            f"{key.known_hosts_file} has no line for {named}: environment {env.name!r} reads nothing of "
            f"{key.place!r} over ssh.",
            hint="Write the key there that the host publishes, as a line of known_hosts.",
            id="submissions.W010",
        )


def _webhooks(env: WorkerEnv) -> Iterator[CheckMessage]:
    for name in sorted({WEBHOOKS, *(one.secret for one in env.policy.webhook_secrets)} & env.secrets.keys()):
        secret = env.secret(name)
        if len(secret) < _SHORTEST_OF_WEBHOOKS or _PLACEHOLDER.fullmatch(secret):
            yield CheckWarning(
                f"The secret {name!r} that signs webhooks in environment {env.name!r} is short or a placeholder.",
                hint="Anybody who guesses it can have repositories looked at. Take one of `openssl rand -hex 32`.",
                id="submissions.W009",
            )


def readable_by_others(path: Path) -> list[CheckMessage]:
    """Warn of a file with secrets that other accounts of this machine may read."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return []
    if not mode & _OTHERS:
        return []
    return [
        CheckWarning(
            f"Other accounts of this machine may read or write {path}, and secrets may stand there.",
            hint=f"chmod 600 {path}",
            id="submissions.W004",
        )
    ]
