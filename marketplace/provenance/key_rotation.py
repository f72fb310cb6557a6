"""Put new keys in the place of a file of keys that somebody else may have."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from marketplace.provenance.keys import SigningKeyError, SigningKeys, key_id, public_pem, read_keys, write_keys

_SHOWN = 16


def ids_of(keys: SigningKeys) -> tuple[str, str]:
    """Return the names of both keys, that for statements first."""
    return key_id(public_pem(keys.statements.public_key())), key_id(public_pem(keys.files.public_key()))


def replace_keys(path: str | Path, compromised: Collection[str]) -> tuple[SigningKeys, Path | None]:
    """Return the keys in a file, and new ones that now are in it where it had one of the ``compromised`` names.

    The former file is kept beside it, and its place is returned, ``None`` where nothing was replaced. The new file has
    the owner of the former one. Whoever reads the file gets the former keys or the new ones, and a kill leaves either;
    called again, it goes on. Raises ``SigningKeyError``, and the file is then as it was.
    """
    keys = read_keys(path)
    bad = sorted(set(ids_of(keys)) & set(compromised))
    if not bad:
        return keys, None
    # The file itself and no link to it, which somebody else may have made.
    file = Path(path).resolve()
    spare, kept = file.with_name(f"{file.name}.new"), file.with_name(f"{file.name}.compromised-{bad[0][:_SHOWN]}")
    try:
        # Of a run that was killed; nothing was ever signed with it.
        spare.unlink(missing_ok=True)
        made = write_keys(spare)
        before = file.stat()
        if (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
            os.chown(spare, before.st_uid, before.st_gid)
        with suppress(FileExistsError):
            kept.hardlink_to(file)
        spare.replace(file)
        _written(file.parent)
    except OSError as error:
        raise SigningKeyError(f"{path} could not be replaced by new keys: {error.strerror}.") from error
    return made, kept


def _written(folder: Path) -> None:
    """Let the disk have the names in a folder."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
