"""The command ``vskill-scan``: ``manage.py scan`` for those who have no server and no checkout."""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Final

from vskill import __version__
from vskill.configuration import VARIABLES
from vskill.engine_variables import ENGINE_VARIABLES

_NAME: Final = "vskill-scan"


def main() -> None:
    """Scan what the command line names, and exit as ``manage.py scan`` does.

    Nothing of a server is read or kept: its variables do not count, except those about engines.
    """
    kept = {variable.name for variable in ENGINE_VARIABLES}
    for variable in VARIABLES:
        if variable.name not in kept:
            os.environ.pop(variable.name, None)
    with tempfile.TemporaryDirectory(prefix="vskill-scan-") as folder:
        os.environ["VSKILL_DATA_DIR"] = folder
        os.environ["DJANGO_SETTINGS_MODULE"] = "vskill.settings"
        # Django is imported when the settings are named, and reads them then.
        import django  # noqa: PLC0415

        django.setup()
        from submissions.management.commands.scan import Command  # noqa: PLC0415

        class Program(Command):
            def get_version(self) -> str:
                return __version__

        Program().run_from_argv([_NAME, "", *sys.argv[1:]])


if __name__ == "__main__":
    main()
