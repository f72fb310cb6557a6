"""Keep what accounts upload in the database, where every machine of the registry can read it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connections, transaction
from django.db.models import QuerySet, Sum
from django.db.models.functions import Greatest

from submissions.models import StagedFile, UploadedBundle
from submissions.source.errors import CommitNotAvailable
from submissions.source.uploaded_files import UploadedFiles
from submissions.uploads.bundle import FileList
from submissions.uploads.errors import UploadRefused
from vskill.environments import WorkerEnv
from vskill.hidden_characters import visible
from vskill.kv.clock import database_now

# The fields of a submission with the version that its uploader chose, with the number of the account, and with what it
# says of the version.
VERSION_OF_UPLOAD: Final = "uploadVersion"
ACCOUNT_OF_UPLOAD: Final = "uploadAccount"
CHANGELOG_OF_UPLOAD: Final = "uploadChangelog"
_MIB: Final = 1024 * 1024
# What a file, and a bundle, costs the disk at least.
LEAST_BYTES: Final = 4096
# A file that nothing was published from in this time is sent again.
STAGED_FOR: Final = timedelta(days=1)
# Of one account in one environment in a day, so that nobody can fill the disk.
MOST_BYTES_A_DAY: Final = 256 * _MIB


def stage(env: WorkerEnv, account: int, content: bytes) -> str:
    """Keep a file of an account until its upload names it, for a day; return its SHA-256 (hex), by which that does.

    Raises ``UploadRefused`` where the account has sent too much in a day.
    """
    digest = hashlib.sha256(content).hexdigest()
    rows = StagedFile.objects.using(env.database)
    with transaction.atomic(using=env.database):
        _one_at_a_time(env, account)
        now = database_now(env.database)
        if not rows.filter(namespace=env.name, account=account, sha256=digest).update(created_at=now):
            _refuse_beyond_a_day(env, account, len(content), now)
        rows.bulk_create(
            [StagedFile(namespace=env.name, account=account, sha256=digest, size=len(content), content=content)],
            ignore_conflicts=True,
        )
    return digest


def staged_contents(env: WorkerEnv, account: int, files: FileList) -> dict[str, bytes]:
    """Return the bytes of each file of a list, as the account sent them; raise ``UploadRefused`` for a missing one."""
    wanted = {file.sha256 for file in files.files}
    rows = StagedFile.objects.using(env.database).filter(namespace=env.name, account=account, sha256__in=wanted)
    found = {row.sha256: bytes(row.content) for row in rows.iterator(chunk_size=20)}
    contents: dict[str, bytes] = {}
    for file in files.files:
        content = found.get(file.sha256)
        if content is None or len(content) != file.size:
            raise UploadRefused(
                400,
                f"{visible(file.path, 100)} was not uploaded with this digest and size, or more than a day ago. "
                "Nothing was published: publish the folder again.",
            )
        contents[file.path] = content
    return contents


def remove_old_staged(env: WorkerEnv) -> int:
    """Remove the files of an environment that no upload has named in time, and return how many."""
    before = database_now(env.database) - STAGED_FOR
    old = StagedFile.objects.using(env.database).filter(namespace=env.name, created_at__lt=before)
    return old.delete()[0]


def is_kept(env: WorkerEnv, address: str, digest: str) -> bool:
    """Return whether these files of a skill are kept already."""
    return _bundles(env, address).filter(digest=digest).exists()


def account_of(env: WorkerEnv, address: str) -> int | None:
    """Return the number of the account that uploads a skill, or ``None`` where nothing was uploaded to this address."""
    return _bundles(env, address).order_by("pk").values_list("account", flat=True).first()


def account_of_files(env: WorkerEnv, address: str, digest: str) -> int | None:
    """Return the number of the account that sent these files of a skill first, or ``None`` where nobody did."""
    return _bundles(env, address).filter(digest=digest).values_list("account", flat=True).first()


def keep(env: WorkerEnv, account: int, address: str, files: FileList, contents: Mapping[str, bytes]) -> None:
    """Keep the ``contents`` of ``files`` under ``address`` for ever, in the caller's transaction.

    Keeping them twice changes nothing. ``account`` is the number of the account that sent them.

    Raises ``UploadRefused`` where the account has sent too much in a day.
    """
    _one_at_a_time(env, account)
    if is_kept(env, address, files.digest):
        return
    _refuse_beyond_a_day(env, account, files.size, database_now(env.database))
    UploadedBundle.objects.using(env.database).bulk_create(
        [
            UploadedBundle(
                namespace=env.name,
                address=address,
                digest=files.digest,
                account=account,
                manifest=[[file.path, file.size, file.sha256] for file in files.files],
                content=b"".join(contents[file.path] for file in files.files),
                size=files.size,
            )
        ],
        ignore_conflicts=True,
    )


def kept_files(env: WorkerEnv, address: str, digest: str) -> UploadedFiles:
    """Return the files of an upload; raise ``CommitNotAvailable`` where they are gone or are not what was uploaded."""
    row = _bundles(env, address).filter(digest=digest).first()
    contents = None if row is None else _contents(row.manifest, bytes(row.content))
    if contents is None:
        raise CommitNotAvailable(
            f"The files {digest[:12]} that were uploaded to {address} are not stored as they were sent. Upload again."
        )
    return UploadedFiles(contents)


def _contents(manifest: list[Any], content: bytes) -> dict[str, bytes] | None:
    """Return the files in the bytes of a bundle, ``None`` where one is not what its manifest says."""
    contents, start = {}, 0
    for path, size, sha256 in manifest:
        part = content[start : start + size]
        if hashlib.sha256(part).hexdigest() != sha256:
            return None
        contents[path] = part
        start += size
    return contents


def _bundles(env: WorkerEnv, address: str) -> QuerySet[UploadedBundle]:
    return UploadedBundle.objects.using(env.database).filter(namespace=env.name, address=address)


def _one_at_a_time(env: WorkerEnv, account: int) -> None:
    """Let the uploads of an account wait for one another until the transaction ends, or each would see none of them.

    SQLite runs one writing transaction at a time anyhow.
    """
    connection = connections[env.database]
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            of = f"upload\n{env.name}\n{account}"
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [of])


def _refuse_beyond_a_day(env: WorkerEnv, account: int, more: int, now: datetime) -> None:
    sent = max(more, LEAST_BYTES)
    for model in (StagedFile, UploadedBundle):
        rows = model._default_manager.using(env.database).filter(namespace=env.name, account=account)
        sent += (
            rows.filter(created_at__gt=now - STAGED_FOR).aggregate(sent=Sum(Greatest("size", LEAST_BYTES)))["sent"] or 0
        )
    if sent > MOST_BYTES_A_DAY:
        raise UploadRefused(
            429,
            f"An account uploads {MOST_BYTES_A_DAY // _MIB} MiB a day here, and this would be more. Nothing was kept. "
            "Try again tomorrow.",
        )
