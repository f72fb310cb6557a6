"""Sign what is published and not signed yet, and bring the log up to date: the work of ``manage.py sign_published``.

Signing follows a publication instead of being part of it: one process alone holds the keys, a publication waits for
none of it and never fails for it, and what a killed or missing run left unsigned is simply what is still unsigned.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from time import monotonic
from typing import Final

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from marketplace.models import LogPending, SigningKey, SkillEntry, SkillVersion, VersionSignature
from marketplace.provenance.entries import published, told_published
from marketplace.provenance.keys import SigningKeys, read_keys
from marketplace.provenance.known_keys import hold_good_keys, remember_keys
from marketplace.provenance.log import append_pending, sign_head
from marketplace.provenance.reading import signs
from marketplace.provenance.resigning import sign_anew, wait_for_new_signatures
from marketplace.provenance.statements import signature_of
from marketplace.records import read_audience
from vskill.accounts.audiences import PUBLIC
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now

_AT_ONCE: Final = 50
# Seconds, after which a run signs no more: commands of the scheduler run one after the other.
LONGEST_RUN: Final = 20.0
_OVERDUE: Final = timedelta(hours=1)


@dataclass(frozen=True)
class Signed:
    """What a run did: how many versions it signed and entries it appended, and how many versions are left to sign.

    ``anew`` counts those that were signed by a compromised key before.
    """

    versions: int
    entries: int
    left: int
    anew: int = 0


def sign_published(env: WorkerEnv, *, seconds: float = LONGEST_RUN) -> Signed:
    """Sign what is not signed, for about so many ``seconds``, append what is pending to the log, and sign its head.

    Without keys the log is kept all the same, so that it is complete when there are some. What compromised keys signed
    is signed anew. Raises ``SigningKeyError`` for keys that cannot be read or are compromised; the log is then up to
    date, and its head is not signed.
    """
    if not signs(env):
        return Signed(0, append_pending(env), 0)
    entries = append_pending(env)
    keys = read_keys(env.policy.signing_key_file)
    rows = remember_keys(env, keys)
    until, versions = monotonic() + seconds, 0
    while signed := _sign_some(env, keys, rows):
        versions += signed
        if monotonic() >= until:
            break
    anew = 0
    while monotonic() < until and (done := sign_anew(env, keys, rows)):
        anew += len(done)
    # Versions of an earlier release have an entry from now on.
    entries += append_pending(env)
    sign_head(env, keys, rows[0])
    return Signed(versions, entries, unsigned(env) + wait_for_new_signatures(env), anew)


def unsigned(env: WorkerEnv) -> int:
    """Return how many versions are not signed yet."""
    return _unsigned(env).count()


def overdue(env: WorkerEnv) -> int:
    """Return how many versions have not been signed for an hour after their publication, where that is done at all."""
    if not signs(env):
        return 0
    return _unsigned(env).filter(created_at__lt=database_now(env.database) - _OVERDUE).count()


def _unsigned(env: WorkerEnv) -> QuerySet[SkillVersion]:
    return SkillVersion.objects.using(env.database).filter(namespace=env.name, signed_at=None)


def _sign_some(env: WorkerEnv, keys: SigningKeys, rows: tuple[SigningKey, SigningKey]) -> int:
    """Sign the newest versions that are not signed, and return how many that were.

    The newest go first: an old registry that begins to sign has many, and people ask for what was just published.
    """
    texts = ("skill_md", "description", "findings", "contract", "metadata")
    found = list(_unsigned(env).select_related("skill").defer(*texts).order_by("-id")[:_AT_ONCE])
    made = [signature_of(env, version, keys, rows) for version in found]
    with transaction.atomic(using=env.database):
        # Nobody appends meanwhile, so that a version which is not in the log gets there once.
        hold_good_keys(env, rows)
        told = told_published(env, [version.pk for version in found])
        public = _public(env, {version.skill_id for version in found})
        missing = [published(env, one) for one in found if one.pk not in told and one.skill_id in public]
        LogPending.objects.using(env.database).bulk_create(missing)
        # Where another run signed one meanwhile, its signature stays.
        VersionSignature.objects.using(env.database).bulk_create(made, ignore_conflicts=True)
        SkillVersion.objects.using(env.database).filter(pk__in=[version.pk for version in found]).update(
            signed_at=Now()
        )
    return len(found)


def _public(env: WorkerEnv, skills: set[int]) -> set[int]:
    """Return which of some skills everybody sees, locked, so that none is closed before it is told of."""
    rows = SkillEntry.objects.using(env.database).select_for_update().filter(pk__in=skills).order_by("pk")
    return {pk for pk, word in rows.values_list("pk", "visibility") if read_audience(word) == PUBLIC}
