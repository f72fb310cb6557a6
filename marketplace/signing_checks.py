"""System checks of the keys that an environment signs with."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as CheckWarning
from django.core.exceptions import ImproperlyConfigured

from marketplace.provenance.keys import SigningKeyError, read_keys
from vskill.environments import WorkerEnv, all_environments

_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


@register(Tags.compatibility)
def check_signing_keys(app_configs: Sequence[Any] | None, **_kwargs: Any) -> list[CheckMessage]:
    """Report files of signing keys that cannot be used, or that others could read."""
    try:
        environments = list(all_environments().values())
    except ImproperlyConfigured:
        # Reported by the check of the environments themselves.
        return []
    return [problem for env in environments if env.policy.signing_key_file for problem in _problems(env)]


def _problems(env: WorkerEnv) -> Iterator[CheckMessage]:
    path = Path(env.policy.signing_key_file)
    if not path.is_absolute():
        yield Error(
            f"The signing_key_file of environment {env.name!r} is no absolute path.",
            hint="Every process has to find the same file, wherever it is started.",
            id="marketplace.E001",
        )
        return
    try:
        mode = path.stat().st_mode
    except PermissionError:
        # The web server needs no keys, and may run as an account that has none.
        return
    except OSError:
        mode = 0
    if mode & _OTHERS:
        yield CheckWarning(
            f"Other accounts of this machine may read or write the signing keys in {path}.",
            hint=f"chmod 600 {path}, and make new keys if somebody may have read them.",
            id="marketplace.W001",
        )
    try:
        read_keys(path)
    except SigningKeyError as error:
        yield CheckWarning(
            f"Environment {env.name!r} signs nothing: {error}",
            hint="'manage.py signing_key create --to FILE' makes a file with keys.",
            id="marketplace.W002",
        )
