"""Revoke keys that somebody else may have: mark them, replace them, and sign anew what they signed.

Each step is found done when it is run again, so a run that dies anywhere goes on. After the first one nothing is signed
with the keys any more and nothing that they signed from then on is trusted, whatever becomes of the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.db import transaction
from django.db.models import Max, Q

from marketplace.models import HistoryEvent, LogState, SigningKey, TreeHead, VersionSignature
from marketplace.models.provenance import ReplacedSignature
from marketplace.provenance.entries import note_key_compromised
from marketplace.provenance.key_rotation import ids_of, replace_keys
from marketplace.provenance.keys import SigningKeyError
from marketplace.provenance.known_keys import lock_log, remember_keys
from marketplace.provenance.log import append_pending, sign_head
from marketplace.provenance.log_check import log_faults
from marketplace.provenance.reading import signs
from marketplace.provenance.resigning import doubted, sign_anew
from marketplace.provenance.verification import why_not_vouched
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now, isoformat

HISTORY_PREFIX: Final = "signing-key:"
# Characters of the name of a key that are enough to name it.
LEAST_NAMED: Final = 8
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Revocation:
    """What is asked: ``names`` of keys or their beginnings, from when on they are compromised, who asks, and why.

    Without ``since`` it is the time that was told before, or else the beginning of each key.
    """

    names: tuple[str, ...]
    since: datetime | None
    actor: str
    reason: str


@dataclass(frozen=True)
class OfVersion:
    """A version that a revoked key signed: ``before`` it was compromised or later, and what became of it."""

    skill: str
    version: str
    signed_at: str
    before: bool
    outcome: str


@dataclass
class Revoked:
    """What became of revoked keys in an environment.

    Entries of the log from ``entries_before`` to before ``entries_signed`` stand under heads of these keys alone that
    were signed after they were compromised. ``faults`` are those of the log, none where it agrees with each head.
    """

    environment: str
    keys: list[dict[str, str]] = field(default_factory=list)
    new_keys: list[str] = field(default_factory=list)
    kept_file: str = ""
    versions: list[OfVersion] = field(default_factory=list)
    entries_before: int = 0
    entries_signed: int = 0
    faults: list[str] = field(default_factory=list)

    @property
    def anew(self) -> int:
        """Return how many versions were signed anew."""
        return sum(one.outcome == ANEW for one in self.versions)

    @property
    def doubted(self) -> list[OfVersion]:
        """Return the versions that the registry cannot vouch for."""
        return [one for one in self.versions if one.outcome not in (ANEW, WAITS)]

    def as_json(self) -> dict[str, Any]:
        """Return plain values for ``json.dumps``."""
        return {
            "environment": self.environment,
            "keys": self.keys,
            "newKeys": self.new_keys,
            "keptFile": self.kept_file or None,
            "signedAnew": self.anew,
            "versions": [
                {
                    "skill": one.skill,
                    "version": one.version,
                    "signedAt": one.signed_at,
                    "before": one.before,
                    "outcome": one.outcome,
                }
                for one in self.versions
            ],
            "entriesBefore": self.entries_before,
            "entriesSigned": self.entries_signed,
            "logFaults": self.faults,
        }


ANEW: Final = "signed anew"
WAITS: Final = "waits to be signed anew"


def revoke(env: WorkerEnv, asked: Revocation, progress: Progress) -> Revoked:
    """Revoke keys, and return what became of all that they signed; ``progress`` gets versions that are done and all.

    Where the environment has none of these keys, nothing is done and no key is returned. Raises ``SigningKeyError``
    where they cannot be marked, and nothing was changed, or where the file cannot be read or replaced: they are then
    marked.
    """
    rows = _named(env, asked.names)
    if not rows:
        return Revoked(env.name)
    _mark(env, rows, asked)
    done = Revoked(env.name)
    if signs(env):
        bad = SigningKey.objects.using(env.database).filter(namespace=env.name).exclude(compromised_since=None)
        try:
            keys, kept = replace_keys(env.policy.signing_key_file, list(bad.values_list("key_id", flat=True)))
        except SigningKeyError as error:
            raise SigningKeyError(
                f"The keys are marked: nothing is signed with them any more. {error} Name a file with new keys "
                "('manage.py signing_key create --to FILE' makes one) and run this again."
            ) from error
        done.new_keys, done.kept_file = list(ids_of(keys)), str(kept or "")
        # Those which somebody has mended since are tried again.
        doubted(env).update(doubt="")
        append_pending(env)
        present = remember_keys(env, keys)
        total, count = len(_versions(env, rows)), 0
        while some := sign_anew(env, keys, present):
            count += len(some)
            progress(min(count, total), total)
        sign_head(env, keys, present[0])
    return _told(env, rows, done)


def would_revoke(env: WorkerEnv, asked: Revocation, progress: Progress) -> Revoked:
    """Return what ``revoke`` would do, and write nothing; a version is tried as it would be. Raises the same errors."""
    rows = _named(env, asked.names)
    for row in rows:
        row.compromised_since = _since(env, row, asked)
    done = _told(env, rows, Revoked(env.name)) if rows else Revoked(env.name)
    found = _signed_by(env, rows).select_related("version__skill", "key", "files_key")
    total, outcomes = found.count(), dict[tuple[str, str], str]()
    for number, one in enumerate(found.iterator(chunk_size=50), start=1):
        outcomes[one.version.skill.slug, one.version.version] = why_not_vouched(env, one.version) or ANEW
        progress(number, total)
    done.versions = [
        OfVersion(
            one.skill, one.version, one.signed_at, one.before, outcomes.get((one.skill, one.version), one.outcome)
        )
        for one in done.versions
    ]
    return done


def _named(env: WorkerEnv, names: tuple[str, ...]) -> list[SigningKey]:
    """Return the keys of an environment with these names; raise ``SigningKeyError`` for a name of several."""
    rows = list(SigningKey.objects.using(env.database).filter(namespace=env.name).order_by("pk"))
    found: dict[int, SigningKey] = {}
    for name in names:
        fitting = [row for row in rows if row.key_id.startswith(name.lower())]
        if len(name) < LEAST_NAMED or len(fitting) > 1:
            raise SigningKeyError(
                f"{name!r} is too short for the name of a key. 'manage.py signing_key list' has them. "
                f"Nothing was changed in {env.name}."
            )
        found |= {row.pk: row for row in fitting}
    return list(found.values())


def _since(env: WorkerEnv, row: SigningKey, asked: Revocation) -> datetime:
    known = row.compromised_since
    if asked.since is None:
        return known or row.since
    if asked.since > database_now(env.database):
        raise SigningKeyError(f"{isoformat(asked.since)} has not come yet. Nothing was changed in {env.name}.")
    if known is not None and known < asked.since:
        raise SigningKeyError(
            f"The key {row.key_id} is compromised from {isoformat(known)} on; what was told is not taken back. "
            f"Nothing was changed in {env.name}: name no later time, or none."
        )
    return asked.since


def _mark(env: WorkerEnv, rows: list[SigningKey], asked: Revocation) -> None:
    LogState.objects.using(env.database).get_or_create(namespace=env.name)
    with transaction.atomic(using=env.database):
        lock_log(env)
        for row in rows:
            # As it is under the lock.
            row.refresh_from_db()
            since = _since(env, row, asked)
            if row.compromised_since == since:
                continue
            now = database_now(env.database)
            row.compromised_since, row.compromised_at = since, row.compromised_at or now
            row.until = row.until or now
            row.save(using=env.database, update_fields=["compromised_since", "compromised_at", "until"])
            note_key_compromised(env, row, since)
            HistoryEvent.objects.using(env.database).create(
                namespace=env.name,
                subject=f"{HISTORY_PREFIX}{row.key_id}",
                action="revoked",
                actor=asked.actor,
                reason=f"compromised from {isoformat(since)} on. {asked.reason}".strip(),
            )


def _signed_by(env: WorkerEnv, rows: list[SigningKey], model: Any = VersionSignature) -> Any:
    found = model.objects.using(env.database).filter(namespace=env.name)
    return found.filter(Q(key__in=rows) | Q(files_key__in=rows)).order_by("version_id")


def _versions(env: WorkerEnv, rows: list[SigningKey]) -> list[OfVersion]:
    """Return what the keys signed of versions, also what was replaced since."""
    since = min(row.compromised_since for row in rows if row.compromised_since is not None)
    columns = ("version__skill__slug", "version__version", "signed_at")
    kept = _signed_by(env, rows, ReplacedSignature).values_list(*columns)
    found = [OfVersion(slug, number, isoformat(at), at < since, ANEW) for slug, number, at in kept]
    for slug, number, at, doubt in _signed_by(env, rows).values_list(*columns, "doubt"):
        found.append(OfVersion(slug, number, isoformat(at), at < since, doubt or WAITS))
    return found


def _told(env: WorkerEnv, rows: list[SigningKey], done: Revoked) -> Revoked:
    for row in rows:
        since = row.compromised_since or row.since
        done.keys.append({"keyId": row.key_id, "algorithm": row.algorithm, "compromisedSince": isoformat(since)})
    done.versions = _versions(env, rows)
    heads = TreeHead.objects.using(env.database).filter(namespace=env.name)
    earliest = min(row.compromised_since or row.since for row in rows)
    before, signed = heads.filter(signed_at__lt=earliest), heads.filter(key__in=rows)
    done.entries_before = before.aggregate(most=Max("size"))["most"] or 0
    done.entries_signed = signed.aggregate(most=Max("size"))["most"] or 0
    done.faults = [f"{about}: {detail}" for about, detail in log_faults(env)]
    return done
