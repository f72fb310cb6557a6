"""Follow repositories for the measurement of webhooks, in a process of its own: ``python -m ... COUNT``."""

from __future__ import annotations

import os
import sys

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "vskill.settings")
    django.setup()

from django.core.management import call_command

from submissions.following.store import follow
from tests.bench.webhooks import followed
from vskill.environments import get_environment


def main() -> None:
    """Make the tables, and follow so many repositories."""
    call_command("migrate", verbosity=0)
    env = get_environment("default")
    for number in range(int(sys.argv[1])):
        follow(env, followed(number), branch="", tags="", actor="bench")


if __name__ == "__main__":
    main()
