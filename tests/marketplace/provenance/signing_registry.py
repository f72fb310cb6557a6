"""A registry that signs, for tests: an environment with a file of new keys."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.test import override_settings

from marketplace.provenance.keys import write_keys
from vskill.environments import WorkerEnv, get_environment

PUBLIC_URL = "https://skills.example.org"


@contextmanager
def signing_with(key_file: Path) -> Iterator[WorkerEnv]:
    """Give the environment of the tests a file of keys, which is made where it is not there."""
    if not key_file.exists():
        write_keys(key_file)
    options = {
        "hosts": ["testserver", "localhost"],
        "public_url": PUBLIC_URL,
        "policy": {"signing_key_file": str(key_file)},
    }
    with override_settings(VSKILL_ENVIRONMENTS={"default": options}):
        yield get_environment("default")
