"""The job of django-tasks-db that does nothing, where its worker can import it by name."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def _nothing() -> None:
    """Do nothing."""


_nothing.__qualname__ = "nothing"
# The library is there in the environment of the peers alone.
nothing: Any = import_module("django_tasks").task()(_nothing)
