"""What can be wrong in the store, and how each kind is looked for and mended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from vskill.environments import WorkerEnv


class Kind(StrEnum):
    """What is wrong."""

    ORPHAN_MESSAGE = "orphan_message"
    NO_MESSAGE = "submission_without_message"
    DANGLING_ALIAS = "dangling_alias"
    PROJECTION = "projection_disagrees"
    MALFORMED = "malformed"
    UNREADABLE = "unreadable"
    ORPHAN_EVIDENCE = "orphan_evidence"
    CAPABILITIES = "capabilities_disagree"
    FACETS = "facets_disagree"
    COUNTS = "counts_disagree"
    SEARCH = "search_disagrees"
    SCANS = "scan_history_disagrees"
    UNSIGNED = "published_without_signature"
    LOG = "log_disagrees"
    DATABASE = "database_damaged"


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: its kind, the key or id it is about, the detail, and whether it was repaired."""

    kind: Kind
    subject: str
    detail: str
    repaired: bool = False


Mend = Callable[[WorkerEnv], str]
"""Repair one problem in the caller's transaction; returns why that was not possible, empty where it was done."""

Mends = Mend | Sequence[Mend]
"""A repair, or the parts of one, each in a transaction of its own so that others write in between."""

Look = Callable[[WorkerEnv], Sequence[tuple[Problem, Mends]]]
"""Find the problems of one kind, each with its repair."""
