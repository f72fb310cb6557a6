"""Where others hear of each event of a skill's history, in the transaction that writes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.dispatch import Signal

from marketplace.models import SkillEntry
from vskill.environments import WorkerEnv


@dataclass(frozen=True)
class SkillChange:
    """One event of a skill's history: what was done (``yanked``, ``flagged: report``), by whom and why.

    ``version`` is empty where it concerns the whole skill. ``source`` names the row of the history.
    """

    env: WorkerEnv
    skill: SkillEntry
    action: str
    version: str
    actor: str
    reason: str
    source: str


# Sent with ``change``. An error of a receiver undoes the change: what must be told is written with it, or neither is.
skill_changed: Final = Signal()
