"""Read, write and edit the list of known bad content from a shell."""

from __future__ import annotations

import getpass
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from marketplace.known_bad.entries import BadContent, InvalidKnownBad, Remembered, entries, forget, remember
from marketplace.known_bad.lists import Line, as_document, read_list
from marketplace.likeness.known import find_equal
from marketplace.likeness.published import same_content, similar_content
from submissions.source.errors import SourceError
from submissions.source.plain_folder import open_folder
from submissions.verification.errors import InvalidPackage
from submissions.verification.package_signature import signature_of
from submissions.verification.packages import read_package
from vskill.environments import WorkerEnv
from vskill.kv.threads import readers, writers
from vskill.management.environment_command import EnvironmentCommand

_LONGEST_LIST = 64 * 1024 * 1024


class Command(EnvironmentCommand):
    """Import, list, add and remove known bad content."""

    help = (
        "Known bad content is refused wherever it comes from, also under other file names and with other whitespace; "
        "what is similar to it is held. What is published of it is flagged. Exit code 1: something of a list could not "
        "be read; the rest was imported."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the actions ``import``, ``add``, ``list`` and ``remove`` with their arguments."""
        super().add_arguments(parser)
        actions = parser.add_subparsers(dest="action", required=True)
        importing = actions.add_parser("import", help="read a list, CSV or JSON")
        importing.add_argument("file", help="the list; docs/known-bad.md describes it")
        adding = actions.add_parser("add", help="remember the skill in a folder of this machine")
        adding.add_argument("folder")
        adding.add_argument("--name", default="", help="what findings call it (default: the name of the skill)")
        adding.add_argument("--source", default="", help="where it is known from")
        removing = actions.add_parser("remove", help="forget an entry, and take off the flags that came of it")
        removing.add_argument("id", type=int, help="its number in the list")
        for changing in (importing, adding):
            changing.add_argument("--dry-run", action="store_true", help="say what would be done, and change nothing")
        for reasoned in (adding, removing):
            reasoned.add_argument("--reason", required=True, help="why; submitters and holders read it")
        for any_action in (importing, adding, removing, actions.add_parser("list")):
            any_action.add_argument("--json", action="store_true", dest="as_json", help="print one JSON document")

    async def work(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        """Run the action in one environment; raise ``CommandError`` where it cannot be done."""
        try:
            await getattr(self, f"_{options['action']}")(env, options)
        except InvalidKnownBad as error:
            raise CommandError(str(error)) from error

    async def _import(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        lines = _read(Path(options["file"]))
        results = [await self._line(env, line, options) for line in lines]
        counts = {name: sum(one["result"] == name for one in results) for name in ("added", "known", "invalid")}
        if options["as_json"]:
            self._print({"dryRun": options["dry_run"], **counts, "entries": results})
        else:
            for one in results:
                if one["result"] == "invalid" or one["flagged"] or one["relatives"]:
                    self.stdout.write(_in_words(one))
            would = "would be " if options["dry_run"] else ""
            self.stdout.write(
                f"{env.name}: {counts['added']} {would}added, {counts['known']} known already, "
                f"{counts['invalid']} cannot be read"
            )
        if counts["invalid"]:
            raise SystemExit(1)

    async def _line(self, env: WorkerEnv, line: Line, options: Mapping[str, Any]) -> dict[str, Any]:
        if line.content is None:
            return {"line": line.number, "result": "invalid", "problem": line.problem, "flagged": [], "relatives": []}
        return {"line": line.number, **await self._remember(env, line.content, dry_run=options["dry_run"])}

    async def _remember(self, env: WorkerEnv, bad: BadContent, *, dry_run: bool) -> dict[str, Any]:
        if dry_run:
            return await readers.run(_expected, env, bad)
        return _outcome(await writers.run(remember, env, bad, actor=getpass.getuser()))

    async def _add(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        bad = await _content_of(Path(options["folder"]), options)
        outcome = await self._remember(env, bad, dry_run=options["dry_run"])
        if options["as_json"]:
            self._print({"dryRun": options["dry_run"], **outcome})
        else:
            self.stdout.write(_in_words(outcome))

    async def _list(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        found = await readers.run(lambda: list(entries(env)))
        if options["as_json"]:
            self._print(as_document(found))
            return
        for one in found:
            how = "similar too" if one.sketch else "equal only"
            source = f", from {one.source}" if one.source else ""
            self.stdout.write(f"{one.pk}  {one.name} ({how}{source}): {one.reason}")
        if not found:
            self.stdout.write(f"{env.name}: no content is known to be bad")

    async def _remove(self, env: WorkerEnv, options: Mapping[str, Any]) -> None:
        number = options["id"]
        if not await writers.run(forget, env, number, actor=getpass.getuser(), reason=options["reason"]):
            raise CommandError(f"There is no entry {number} in {env.name!r}; nothing was changed.")
        if options["as_json"]:
            self._print({"id": number, "result": "removed"})
        else:
            self.stdout.write(f"{number} is no longer known bad")

    def _print(self, document: Mapping[str, Any]) -> None:
        self.stdout.write(json.dumps(document))


def _read(path: Path) -> list[Line]:
    try:
        if path.stat().st_size > _LONGEST_LIST:
            raise CommandError(f"{path} is longer than a list can be. Nothing was imported.")
        return read_list(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CommandError(f"{path} cannot be read as a list: {error}. Nothing was imported.") from error


async def _content_of(folder: Path, options: Mapping[str, Any]) -> BadContent:
    with tempfile.TemporaryDirectory(prefix="vskill-known-bad-") as scratch:
        try:
            package = await read_package(open_folder(folder), "", destination=Path(scratch))
        except (InvalidPackage, SourceError) as error:
            raise CommandError(f"{error} Nothing was remembered.") from error
        return BadContent(
            name=options["name"] or package.name,
            reason=options["reason"],
            content_hash=package.content_hash,
            signature=signature_of(package),
            source=options["source"],
        )


def _expected(env: WorkerEnv, bad: BadContent) -> dict[str, Any]:
    """Return what ``remember`` would do, as far as that can be told without doing it."""
    known = find_equal(env, bad.content_hash, bad.signature.normal_digest)
    equal = same_content(env, bad.content_hash, bad.signature.normal_digest)
    similar = [one.version for one in similar_content(env, bad.signature.sketch)]
    return {
        "result": "known" if known is not None else "added",
        "id": known.pk if known is not None else None,
        "name": bad.name,
        "flagged": [_named(one) for one in equal],
        "relatives": [_named(one) for one in similar if one.pk not in {same.pk for same in equal}],
    }


def _outcome(done: Remembered) -> dict[str, Any]:
    return {
        "result": "added" if done.created else "known",
        "id": done.entry.pk,
        "name": done.entry.name,
        "flagged": [_named(one) for one in done.flagged],
        "relatives": [_named(one.version) for one in done.relatives],
    }


def _named(version: Any) -> str:
    return f"{version.skill.slug} {version.version}"


def _in_words(one: Mapping[str, Any]) -> str:
    if one["result"] == "invalid":
        return f"line {one['line']}: {one['problem']}"
    said = [f"{one['name']}: {one['result']}"]
    if one["flagged"]:
        said.append(f"published, and flagged: {', '.join(one['flagged'])}")
    if one["relatives"]:
        said.append(f"similar to what passed, so compared for equality alone: {', '.join(one['relatives'])}")
    return "; ".join(said)
