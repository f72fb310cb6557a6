"""Look for versions that stayed unsigned, and for a log that is no longer what its signed heads say."""

from __future__ import annotations

from marketplace.provenance.log_check import log_faults
from marketplace.provenance.resigning import doubted
from marketplace.provenance.signing import overdue, sign_published
from submissions.recovery.problems import Kind, Mend, Problem
from vskill.environments import WorkerEnv


def unsigned_problems(env: WorkerEnv) -> list[tuple[Problem, Mend]]:
    """Return that versions wait for their signatures longer than a run of ``sign_published`` explains.

    Those that a compromised key alone has signed, because the registry cannot vouch for them, are named one by one.
    """
    found: list[tuple[Problem, Mend]] = []
    if waiting := overdue(env):
        detail = f"{waiting} versions have been published for an hour and are not signed"
        found.append((Problem(Kind.UNSIGNED, "signatures of versions", detail), _sign))
    for one in doubted(env).select_related("version__skill").order_by("pk"):
        subject = f"{one.version.skill.slug} {one.version.version}"
        detail = f"a compromised key alone has signed it, and the registry cannot vouch for it: {one.doubt}"
        found.append((Problem(Kind.UNSIGNED, subject, detail), _vouch))
    return found


def _sign(env: WorkerEnv) -> str:
    sign_published(env)
    return "" if not (left := overdue(env)) else f"{left} are left; run sign_published again"


def _vouch(_env: WorkerEnv) -> str:
    return "mend what disagrees, and run 'manage.py signing_key revoke' again with the name of that key"


def log_problems(env: WorkerEnv) -> list[tuple[Problem, Mend]]:
    """Return where the log disagrees with itself or with what was signed of it; nothing here can mend that."""
    return [(Problem(Kind.LOG, subject, detail), _restore) for subject, detail in log_faults(env)]


def _restore(_env: WorkerEnv) -> str:
    return "a log is never rewritten; restore it from a backup"
