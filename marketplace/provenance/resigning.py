"""Sign anew what a compromised key signed, where the registry can still vouch for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from marketplace.models import SigningKey, VersionSignature
from marketplace.models.provenance import ReplacedSignature
from marketplace.provenance.keys import SigningKeys
from marketplace.provenance.known_keys import hold_good_keys
from marketplace.provenance.statements import signature_of
from marketplace.provenance.verification import why_not_vouched
from vskill.environments import WorkerEnv

_AT_ONCE: Final = 50
_TEXTS: Final = ("skill_md", "description", "findings", "contract", "metadata")


@dataclass(frozen=True)
class SignedAnew:
    """A version that a compromised key had signed, and why it was not signed anew, '' where it was."""

    skill: str
    version: str
    doubt: str = ""


def wait_for_new_signatures(env: WorkerEnv) -> int:
    """Return how many versions are signed by a compromised key, and are to be signed anew."""
    compromised = _compromised(env)
    return _signed_by(env, compromised).filter(doubt="").count() if compromised else 0


def doubted(env: WorkerEnv) -> QuerySet[VersionSignature]:
    """Return the signatures by compromised keys that stay, because the registry cannot vouch for their versions."""
    return _signed_by(env, _compromised(env)).exclude(doubt="")


def sign_anew(env: WorkerEnv, keys: SigningKeys, rows: tuple[SigningKey, SigningKey]) -> list[SignedAnew]:
    """Sign anew some versions that are signed by a compromised key, and return what became of each.

    ``rows`` are those of both keys. Where the registry cannot vouch for a version, its signature stays and says why.
    What it replaces is kept. Nothing is returned when nothing is left. Raises ``KeyCompromised``.
    """
    compromised = _compromised(env)
    if not compromised:
        return []
    found = _some(env, compromised)
    # Outside of the transaction, because it reads the archives.
    doubts = {one.pk: why_not_vouched(env, one.version) for one in found}
    with transaction.atomic(using=env.database):
        hold_good_keys(env, rows)
        # Another run may have replaced some meanwhile.
        left = set(_signed_by(env, compromised).filter(pk__in=doubts).values_list("pk", flat=True))
        for one in found:
            if one.pk in left:
                _replace(env, one, doubts[one.pk], keys, rows)
    return [SignedAnew(one.version.skill.slug, one.version.version, doubts[one.pk]) for one in found]


def _replace(
    env: WorkerEnv, old: VersionSignature, doubt: str, keys: SigningKeys, rows: tuple[SigningKey, SigningKey]
) -> None:
    row = VersionSignature.objects.using(env.database).filter(pk=old.pk)
    if doubt:
        row.update(doubt=doubt)
        return
    ReplacedSignature.objects.using(env.database).create(
        namespace=env.name,
        version=old.version,
        statement=old.statement,
        key=old.key,
        files=old.files,
        files_key=old.files_key,
        signed_at=old.signed_at,
    )
    new = signature_of(env, old.version, keys, rows)
    row.update(statement=new.statement, key=new.key, files=new.files, files_key=new.files_key, signed_at=Now())


def _compromised(env: WorkerEnv) -> list[int]:
    rows = SigningKey.objects.using(env.database).filter(namespace=env.name).exclude(compromised_since=None)
    return list(rows.values_list("pk", flat=True))


def _signed_by(env: WorkerEnv, keys: list[int]) -> QuerySet[VersionSignature]:
    rows = VersionSignature.objects.using(env.database).filter(namespace=env.name)
    return rows.filter(Q(key__in=keys) | Q(files_key__in=keys))


def _some(env: WorkerEnv, keys: list[int]) -> list[VersionSignature]:
    rows = VersionSignature.objects.using(env.database).filter(namespace=env.name, doubt="")
    rows = rows.select_related("key", "files_key", "version__skill").defer(*(f"version__{name}" for name in _TEXTS))
    # One key after the other: the index of each finds them, and says at once that nothing is left.
    return list(rows.filter(key__in=keys)[:_AT_ONCE]) or list(rows.filter(files_key__in=keys)[:_AT_ONCE])
