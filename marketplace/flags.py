"""Flag a published version, and tell those who hold it: the one way in which a warning comes after a publication.

A flag belongs to one version and has one kind; a version has at most one of each. Pages, lists, API, dialects and the
headers of downloads warn of a flagged version, and call it suspicious. A skill is flagged as long as its latest version
is, so an author mends it with a new version. ``policy.quarantine_flags`` names the kinds that withhold a version.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final

from marketplace.errors import SkillNotFound
from marketplace.models import SkillEntry, SkillFlag, SkillVersion
from marketplace.records import SkillRecord
from marketplace.skills.latest import kept_versions, with_latest
from marketplace.skills.moderation import ReasonMissing
from marketplace.skills.store import Event, in_transaction, locked_skill, note, update_skill
from marketplace.skills.visibility import light_versions
from vskill.environments import WorkerEnv
from vskill.hidden_characters import visible
from vskill.kv.clock import database_now

_LONGEST_REASON: Final = 500
# What a version keeps of its quarantine, so that the end of the flag ends that quarantine and no other.
_QUARANTINED: Final = "Withheld because it was flagged: "


class FlagKind(StrEnum):
    """Why a published version is flagged.

    ``verdict``: a later scan would not publish it without a person. ``known_bad``: its content became known to be bad.
    ``similar``: it is similar to such content. ``outside``: something changed that it uses from outside the registry.
    ``opinion``: a scanner outside the registry accuses it gravely. ``report``: a visitor reported it, and an operator
    agreed.
    """

    VERDICT = "verdict"
    KNOWN_BAD = "known_bad"
    SIMILAR = "similar"
    OUTSIDE = "outside"
    OPINION = "opinion"
    REPORT = "report"


def flag(
    env: WorkerEnv,
    slug: str,
    kind: FlagKind,
    reason: str,
    *,
    version: str = "",
    details: Mapping[str, Any] | None = None,
    actor: str = "verification",
) -> bool:
    """Flag a version of a skill, and return whether that is new; the same flag twice changes nothing.

    ``kind`` says who may clear it again, and ``reason`` is one sentence for those who have installed the skill.
    ``version`` is the latest one by default. ``details`` are values of JSON that operators see besides, and ``actor``
    goes into the history. A flag of the same kind with another reason is replaced. Where the policy of ``env`` names
    the kind, the version is quarantined as well. Raises ``SkillNotFound`` and ``ReasonMissing``.
    """
    said = visible(" ".join(reason.split()), _LONGEST_REASON)
    if not said:
        raise ReasonMissing("Say why: those who use the skill read the reason. Nothing was flagged.")
    kept = dict(details or {})

    def write() -> bool:
        row, found = _locked(env, slug, version)
        flags = SkillFlag.objects.using(env.database)
        present = flags.filter(version=found, kind=kind).first()
        if present is not None and (present.reason, present.details) == (said, kept):
            return False
        values = {"namespace": env.name, "skill": row, "reason": said, "details": kept, "actor": actor}
        flags.update_or_create(version=found, kind=kind, defaults=values)
        changes: dict[str, Any] = {}
        if kind in env.policy.quarantine_flags and found.quarantined_at is None:
            changes = {"quarantined_at": database_now(env.database), "quarantine_reason": f"{_QUARANTINED}{said}"}
        _write(env, row, found, changes, Event(f"flagged: {kind}", actor, said, found.version))
        return True

    return in_transaction(env, write)


def clear(
    env: WorkerEnv, slug: str, kind: FlagKind, *, version: str = "", actor: str = "verification", reason: str = ""
) -> bool:
    """Take a flag off a version of a skill, and return whether it had one of this kind.

    ``version`` is the latest one by default; ``actor`` and ``reason`` go into the history. A quarantine that came with
    a flag ends with the last flag of the version; one that an operator ordered stays. Raises ``SkillNotFound``.
    """

    def write() -> bool:
        row, found = _locked(env, slug, version)
        flags = SkillFlag.objects.using(env.database).filter(version=found)
        if not flags.filter(kind=kind).delete()[0]:
            return False
        changes: dict[str, Any] = {}
        if found.quarantine_reason.startswith(_QUARANTINED) and not flags.exists():
            changes = {"quarantined_at": None, "quarantine_reason": ""}
        _write(env, row, found, changes, Event(f"flag cleared: {kind}", actor, reason, found.version))
        return True

    return in_transaction(env, write)


def flags_of(env: WorkerEnv, version: SkillVersion) -> list[SkillFlag]:
    """Return the flags of a version, the oldest first."""
    return list(SkillFlag.objects.using(env.database).filter(version=version).order_by("id"))


def _locked(env: WorkerEnv, slug: str, version: str) -> tuple[SkillEntry, SkillVersion]:
    """Return the row of a skill, locked, and its version; the newest where every version is withdrawn."""
    row = locked_skill(env, slug)
    versions = light_versions(SkillVersion.objects.using(env.database).filter(skill=row))
    wanted = version or row.latest_version
    found = versions.filter(version=wanted).first() if wanted else versions.order_by("-ordinal").first()
    if found is None:
        raise SkillNotFound(f"{slug!r} has no version {wanted!r}. Nothing was flagged.")
    return row, found


def _write(env: WorkerEnv, row: SkillEntry, found: SkillVersion, changes: dict[str, Any], event: Event) -> SkillRecord:
    """Write what the flags of a version come to into the version and its skill, with one event."""
    versions = SkillVersion.objects.using(env.database).filter(skill=row)
    before = kept_versions(light_versions(versions))
    changes = {"flag_reason": _joined(flags_of(env, found)), **changes}
    versions.filter(pk=found.pk).update(**changes)
    known = list(light_versions(versions))
    record = with_latest(row.record, known)
    if "quarantined_at" not in changes:
        return note(env, row, record, event)
    # A quarantine changes what is offered, and so lists and search.
    return update_skill(env, row, record, event, kept=(before, kept_versions(known)))


def _joined(flags: Iterable[SkillFlag]) -> str:
    return " ".join(one.reason for one in flags)
