"""Raise a counter by compare-and-set, beside others: ``python -m tests.vskill.kv.increment KEY TIMES``."""

from __future__ import annotations

import asyncio
import os
import sys

import django


async def main(key: str, times: int) -> None:
    from vskill.environments import get_environment  # noqa: PLC0415 - Django must be set up first
    from vskill.kv.errors import VersionConflict  # noqa: PLC0415 - as above
    from vskill.kv.models import KVEntry  # noqa: PLC0415 - as above
    from vskill.kv.namespace import KVNamespace  # noqa: PLC0415 - as above

    namespace = KVNamespace(KVEntry, get_environment("default"))
    done = 0
    while done < times:
        outcome = await namespace.get(key)
        try:
            await namespace.put(key, outcome.require() + 1, expect_version=outcome.version)
        except VersionConflict:
            continue
        done += 1


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "vskill.settings")
    django.setup()
    # All writers begin together, when the last of them is ready.
    print("ready", flush=True)  # noqa: T201 - it is read by the test that started this
    sys.stdin.readline()
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
