"""Ask for another scan of a published version: by our engines where they are newer, and by the scanners outside."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from django.db import transaction

from marketplace.catalog import find_skill_sync, find_version_sync
from marketplace.external_scans import ExternalScan, external_scans_sync
from marketplace.models import SkillVersion
from submissions import messages
from submissions.external_scans.errors import NothingToScan
from submissions.external_scans.store import OPEN_STATES, PER_HOUR, is_overdue, request_scan, scanners_of
from submissions.verification.scan_keys import current_key, engines_of
from vskill.environments import WorkerEnv
from vskill.hidden_characters import visible
from vskill.kv.clock import database_now

# Of the external scans of an hour, so that what is published can be scanned whatever anybody asks for.
MOST_ON_DEMAND: Final = PER_HOUR // 2


class OwnScan(StrEnum):
    """Where a version stands with our own engines.

    ``due``: one of them is newer than its last scan. ``waiting``: it waits for that scan, or is being scanned.
    ``current``: they would say the same again. ``none``: this registry has no engine.
    """

    DUE = "due"
    WAITING = "waiting"
    CURRENT = "current"
    NONE = "none"


@dataclass(frozen=True)
class Standing:
    """What is known of the scans of a version: ``own`` by our engines, ``external`` by each scanner outside.

    ``scanners`` are the names of those that can be asked, and ``asked`` says that this call has asked for anything.
    """

    version: SkillVersion
    own: OwnScan
    external: tuple[ExternalScan, ...]
    scanners: tuple[str, ...]
    running: frozenset[str]
    asked: bool = False

    @property
    def can_ask(self) -> bool:
        """Return whether asking would lead to anything new."""
        return self.own is OwnScan.DUE or bool(set(self.scanners) - self.running)

    @property
    def under_way(self) -> bool:
        """Return whether a scan waits or runs."""
        return self.own is OwnScan.WAITING or bool(self.running)

    @property
    def sentence(self) -> str:
        """Return in words what was asked, or why nothing was."""
        if self.asked:
            return "It will be scanned again."
        if self.under_way:
            return "A scan is under way already: nothing more was asked, and its result will be shown here."
        if self.own is OwnScan.NONE:
            return "This registry runs no engine and asks no scanner outside: there is nothing that could be asked."
        return "Its last scan was by the present engines, which would say the same again: nothing was asked."


def standing(env: WorkerEnv, slug: str, version: str = "") -> Standing:
    """Return where the scans of a published version stand, by default of the latest; raise NothingToScan."""
    found = _published(env, slug, version)
    scans = tuple(external_scans_sync(env, found.content_hash))
    now = database_now(env.database)
    running = frozenset(one.provider for one in scans if one.state in OPEN_STATES and not is_overdue(one, now))
    return Standing(found, _own(env, found), scans, tuple(sorted(scanners_of(env))), running)


def ask_again(env: WorkerEnv, slug: str, version: str = "", *, by: str) -> Standing:
    """Ask for another scan of a published version, by default the latest, and return where it then stands.

    What waits or runs is not asked for twice. ``by`` is who asks. All is asked or nothing: raises NothingToScan, and
    TooManyScans where half of the external scans of this hour are used up.
    """
    found = _published(env, slug, version)
    with transaction.atomic(using=env.database):
        asked = _own(env, found) is OwnScan.DUE and messages.send_rescan(env, found.pk, priority=1)
        for name in sorted(scanners_of(env)):
            _scan, new = request_scan(env, found, name, by=by, most=MOST_ON_DEMAND)
            asked = asked or new
    return replace(standing(env, slug, version), asked=asked)


def _published(env: WorkerEnv, slug: str, version: str) -> SkillVersion:
    skill = find_skill_sync(env, slug)
    found = find_version_sync(env, skill, version) if skill is not None else None
    if found is None:
        of = f"version {visible(version, 64)!r}" if version else "published version"
        raise NothingToScan(f"There is no {of} of {visible(slug, 200)!r}. Nothing was asked.")
    return found


def _own(env: WorkerEnv, version: SkillVersion) -> OwnScan:
    engines = engines_of(env)
    if not engines:
        return OwnScan.NONE
    if messages.rescan_is_queued(env, version.pk):
        return OwnScan.WAITING
    return OwnScan.CURRENT if version.scan_key == current_key(engines) else OwnScan.DUE
