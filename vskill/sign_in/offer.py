"""What the sign-in of an environment offers."""

from __future__ import annotations

from vskill.environments import WorkerEnv


def offers_sign_in(env: WorkerEnv) -> bool:
    """Return whether somebody who signs in may do more here than a stranger, so that pages lead to the sign-in."""
    return env.policy.access != "open"
