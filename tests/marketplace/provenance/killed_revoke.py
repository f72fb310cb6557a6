"""Revoke the keys of one environment after another, each in a process that dies by SIGKILL at a point of its own.

The arguments are the points of ``tests.killed_writes``.
"""

from __future__ import annotations

from typing import Final

import django
from asgiref.sync import async_to_sync

from tests.killed_writes import Arm, die_at_each_point

WRITES: Final = {
    "mark": 'UPDATE "marketplace_signingkey"',
    "told": 'INSERT INTO "marketplace_logpending"',
    "append": 'INSERT INTO "marketplace_logleaf"',
    "key": 'INSERT INTO "marketplace_signingkey"',
    "kept": 'INSERT INTO "marketplace_replacedsignature"',
    "anew": 'UPDATE "marketplace_versionsignature"',
    "head": 'INSERT INTO "marketplace_treehead"',
}


def _revoke(environment: str, _name: str, arm: Arm) -> None:
    from marketplace.models import SigningKey  # noqa: PLC0415 - after setup
    from marketplace.provenance.compromise import Revocation, revoke  # noqa: PLC0415
    from vskill.environments import get_environment  # noqa: PLC0415
    from vskill.kv.threads import writers  # noqa: PLC0415
    from vskill.worker_context import run_with_worker_env  # noqa: PLC0415

    env = get_environment(environment)

    async def main() -> None:
        def work() -> None:
            stolen = SigningKey.objects.filter(namespace=env.name).order_by("pk").values_list("key_id", flat=True)[:2]
            revoke(env, Revocation(tuple(stolen), None, "test", ""), lambda _done, _total: None)

        await run_with_worker_env(env, writers.run, work)

    arm()
    async_to_sync(main)()


def main() -> None:
    """Run with the variables of the process."""
    django.setup()
    from marketplace.provenance import compromise  # noqa: F401, PLC0415 - loaded once for all

    die_at_each_point(WRITES, _revoke)


if __name__ == "__main__":
    main()
