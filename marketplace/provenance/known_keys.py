"""The public keys that an environment has signed with, each with its time; old ones stay, so that they still verify."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction

from marketplace.models import LogState, SigningKey
from marketplace.provenance.keys import PublicKey, SigningKeys, algorithm_of, key_id, public_pem
from marketplace.provenance.trust import KeyCompromised
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now


def known_keys(env: WorkerEnv) -> list[SigningKey]:
    """Return every key of an environment, the ones that sign now first, then the newest."""
    rows = list(SigningKey.objects.using(env.database).filter(namespace=env.name).order_by("-since", "-pk"))
    return sorted(rows, key=lambda row: row.until is not None)


def remember_keys(env: WorkerEnv, keys: SigningKeys) -> tuple[SigningKey, SigningKey]:
    """Return the rows of the keys for statements and for files, which are those that sign from now on.

    Others of the same kind end now; one that comes back has no end any more. Called again, it changes nothing. Raises
    ``KeyCompromised``, and changes nothing, where one of them is.
    """
    with transaction.atomic(using=env.database):
        lock_log(env)
        statements, files = (_remember(env, key.public_key()) for key in (keys.statements, keys.files))
        hold_good_keys(env, (statements, files))
        _end_others(env, (statements, files))
    return statements, files


def hold_good_keys(env: WorkerEnv, rows: Iterable[SigningKey]) -> None:
    """Make sure that none of some keys is compromised or becomes it before the end of the caller's transaction.

    Raises ``KeyCompromised``. Whoever marks a key holds the same lock, that of the log, so nothing is signed with a key
    after it was marked.
    """
    lock_log(env)
    known = SigningKey.objects.using(env.database).filter(pk__in=[row.pk for row in rows])
    bad = known.exclude(compromised_since=None).values_list("key_id", flat=True).first()
    if bad is not None:
        raise KeyCompromised(
            f"The key {bad} is compromised, so nothing is signed with it. 'manage.py signing_key revoke' makes "
            "new ones."
        )


def lock_log(env: WorkerEnv) -> None:
    """Let nobody else append to the log, sign or mark a key before the end of the caller's transaction."""
    LogState.objects.using(env.database).select_for_update().filter(namespace=env.name).first()


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
