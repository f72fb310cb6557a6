#!/usr/bin/env python
"""Run a management command of vskill."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Hand the command line to Django; settings that cannot be read end it with one line for each fault."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "vskill.settings")
    from django.conf import settings
    from django.core.management import execute_from_command_line

    from vskill.variables import InvalidSettings

    try:
        settings.configured or settings.INSTALLED_APPS  # noqa: B018 - reads the settings
    except InvalidSettings as error:
        sys.exit(f"Nothing was done. These settings cannot be used:\n{error}")
    from django.core.management.base import CommandError

    from vskill.unprepared_database import unprepared_databases_named

    if sys.argv[1:2] == ["migrate"]:
        execute_from_command_line(sys.argv)
        return
    try:
        # For Django's own commands; those of vskill do it themselves, wherever they are called from.
        with unprepared_databases_named():
            execute_from_command_line(sys.argv)
    except CommandError as error:
        sys.exit(f"CommandError: {error}")


if __name__ == "__main__":
    main()
