"""Check skills in a folder before they are submitted, without a server and without a database."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from asgiref.sync import async_to_sync
from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from submissions.scanning.documents import as_document
from submissions.scanning.outcomes import EXIT_CODES, gravest
from submissions.scanning.sarif import as_sarif
from submissions.scanning.scan import ScannedSkill, scan_folder, skill_folders
from submissions.scanning.texts import as_markdown, terminal_lines
from submissions.source.plain_folder import open_folder
from submissions.verification.engines import ENGINES, get_engines
from submissions.verification.errors import EngineUnavailable
from submissions.verification.package_plan import is_skill_file
from submissions.verification.verdict import Verdict
from vskill.environments import Policy
from vskill.errors import VskillError

_DUE: Final = Policy()
DEFAULT_ENGINES: Final = tuple(dict.fromkeys((*_DUE.tier1_engines, *_DUE.tier2_engines)))


class Command(BaseCommand):
    """Read, scan and judge every skill in a folder as the server does."""

    # No check of the settings, because those of a server have nothing to do with it.
    requires_system_checks: list[str] = []  # noqa: RUF012 - as Django declares it
    help = (
        "Check every skill in a folder with the engines and rules of the server. Nothing of a skill is run, nothing is "
        "sent anywhere, and no database is needed. Exit codes, the gravest of all skills: 0 clear or notes, "
        "1 the scan could not be done, 2 wrong arguments, 3 format, 4 not scanned completely, 5 held, "
        "6 held with strong signs, 7 refused."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments."""
        parser.add_argument(
            "path", metavar="PATH", help="a skill's folder or SKILL.md, or a folder with several skills"
        )
        form = parser.add_mutually_exclusive_group()
        form.add_argument("--json", action="store_true", dest="as_json", help="print one JSON document")
        form.add_argument("--sarif", action="store_true", help="print a SARIF 2.1.0 log")
        form.add_argument("--markdown", action="store_true", help="print Markdown, for a comment or a job summary")
        parser.add_argument(
            "--engine",
            action="append",
            choices=sorted(ENGINES),
            metavar="NAME",
            help=f"an engine to run; may be repeated. Known: {', '.join(sorted(ENGINES))}; without it: "
            f"{', '.join(DEFAULT_ENGINES)}",
        )
        parser.add_argument(
            "--below", default="", metavar="FOLDER", help="with --sarif: where PATH lies in the repository"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Scan, print, and exit with the code of the gravest verdict."""
        try:
            skills = async_to_sync(self._scan)(_folder(options["path"]), options)
        except VskillError as error:
            raise CommandError(str(error)) from error
        if options["as_json"]:
            self.stdout.write(json.dumps(as_document(skills), ensure_ascii=False, indent=2))
        elif options["sarif"]:
            self.stdout.write(json.dumps(as_sarif(skills, folder=options["below"]), ensure_ascii=False, indent=2))
        elif options["markdown"]:
            self.stdout.write(as_markdown(skills), ending="")
        else:
            for line in terminal_lines(skills, paint=self._paint, every=options["verbosity"] > 1):
                self.stdout.write(line)
        code = EXIT_CODES[gravest(skill.decision.verdict for skill in skills)]
        if code:
            sys.exit(code)

    async def _scan(self, folder: Path, options: dict[str, Any]) -> list[ScannedSkill]:
        engines = get_engines(options["engine"] or DEFAULT_ENGINES)
        for engine in engines:
            try:
                _ = engine.version
            except EngineUnavailable as error:
                raise CommandError(f"{error} Nothing was checked.") from error
        source = open_folder(folder)
        total = len(skill_folders(source))
        if not total:
            raise CommandError(f"There is no SKILL.md in {options['path']} or below it, so nothing was checked.")
        with tqdm(total=total, desc="scanning", unit="", leave=False, file=sys.stderr, disable=None) as bar:

            def done(_skill: ScannedSkill) -> None:
                bar.update()

            return await scan_folder(source, engines, done=done)

    def _paint(self, text: str, verdict: Verdict) -> str:
        if verdict in (Verdict.CLEAR, Verdict.NOTES):
            return str(self.style.SUCCESS(text))
        return str(self.style.WARNING(text) if verdict is Verdict.FORMAT else self.style.ERROR(text))


def _folder(path: str) -> Path:
    """Return the folder to scan; raises CommandError where there is none."""
    given = Path(path)
    if given.is_file() and is_skill_file(given.name):
        return given.parent
    if not given.is_dir():
        raise CommandError(f"{path} is neither a folder nor a SKILL.md, so nothing was checked.")
    return given
