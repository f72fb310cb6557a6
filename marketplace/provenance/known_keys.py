"""The public keys that an environment has signed with, each with its time; old ones stay, so that they still verify."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction

from marketplace.models import SigningKey
from marketplace.provenance.keys import PublicKey, SigningKeys, algorithm_of, key_id, public_pem
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now


def known_keys(env: WorkerEnv) -> list[SigningKey]:
    """Return every key of an environment, the ones that sign now first, then the newest."""
    rows = list(SigningKey.objects.using(env.database).filter(namespace=env.name).order_by("-since", "-pk"))
    return sorted(rows, key=lambda row: row.until is not None)


def remember_keys(env: WorkerEnv, keys: SigningKeys) -> tuple[SigningKey, SigningKey]:
    """Return the rows of the keys for statements and for files, which are those that sign from now on.

    Others of the same kind end now; one that comes back has no end any more. Called again, it changes nothing.
    """
    with transaction.atomic(using=env.database):
        statements, files = (_remember(env, key.public_key()) for key in (keys.statements, keys.files))
        _end_others(env, (statements, files))
    return statements, files


def _remember(env: WorkerEnv, key: PublicKey) -> SigningKey:
    pem = public_pem(key)
    found, _created = SigningKey.objects.using(env.database).get_or_create(
        namespace=env.name, key_id=key_id(pem), defaults={"algorithm": algorithm_of(key), "public_key": pem}
    )
    if found.until is not None:
        found.until = None
        found.save(using=env.database, update_fields=["until"])
    return found


def _end_others(env: WorkerEnv, present: Iterable[SigningKey]) -> None:
    rows = SigningKey.objects.using(env.database).filter(namespace=env.name, until=None)
    ended = rows.exclude(pk__in=[row.pk for row in present])
    if ended.exists():
        ended.update(until=database_now(env.database))
