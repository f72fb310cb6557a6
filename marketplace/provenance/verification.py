"""Check all that is signed of one version against its files, its keys and the log, without any network."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from marketplace.artifacts.fingerprints import content_hash
from marketplace.errors import MarketplaceError
from marketplace.judgement import verdict_of
from marketplace.models import (
    ArchiveBlob,
    LogLeaf,
    LogState,
    SigningKey,
    SkillVersion,
    TreeHead,
    VersionSignature,
)
from marketplace.provenance.dsse import BadSignature, opened
from marketplace.provenance.entries import PUBLISHED, named_engines
from marketplace.provenance.keys import PublicKey, load_public
from marketplace.provenance.log import growth_of, latest_head, read_note
from marketplace.provenance.merkle import is_included, leaf_hash
from marketplace.provenance.proofs import inclusion_proof
from marketplace.provenance.reading import find_signature, leaves_about, publication_leaf
from marketplace.provenance.statements import files_statement, source_digest
from marketplace.provenance.trust import KeyCompromised, caution, is_trusted
from vskill.environments import WorkerEnv
from vskill.kv.clock import isoformat

CHECKS: Final = ("archives", "content", "statement", "files", "log")
# What has to hold of a version before it is signed anew; whether its keys are still trusted does not.
_VOUCHED: Final = ("archives", "content", "statement", "files", "told")
_MALFORMED: Final = (
    *(ValueError, KeyError, TypeError, AttributeError, IndexError, OSError, EOFError),
    *(zipfile.BadZipFile, tarfile.TarError, zlib.error),
)
# Bytes. A skill has at most ten megabytes; a damaged archive could unpack to more than there is memory.
_MOST_UNPACKED: Final = 64 * 1024 * 1024


class DoesNotHold(MarketplaceError):
    """Something that was signed or stored is not what it is compared with."""

    code = "does_not_hold"


class NotSigned(MarketplaceError):
    """There is nothing to compare with."""

    code = "not_signed"


@dataclass(frozen=True)
class Check:
    """One check of a version: its name, whether it ``holds`` (``None``: nothing is signed yet), and a sentence."""

    name: str
    holds: bool | None
    detail: str


def verify_version(
    env: WorkerEnv, version: SkillVersion, trusted: Mapping[str, PublicKey] | None = None
) -> list[Check]:
    """Return what each of ``CHECKS`` says of a version.

    ``trusted`` are public keys by their names, from a place that is not this database; by default its own are believed.
    What a compromised key signed since then does not hold, whoever trusts it.
    """
    one = _Verified(env, version, trusted)
    return [_checked(name, getattr(one, name)) for name in CHECKS]


def why_not_vouched(env: WorkerEnv, version: SkillVersion) -> str:
    """Return why the registry cannot vouch for what it once signed of a version, '' where it can.

    It can where archives, content hash, what was signed and what the log tells agree, whatever became of the keys.
    """
    one = _Verified(env, version, None, whatever_the_key=True)
    checks = [_checked(name, getattr(one, name)) for name in _VOUCHED]
    return "; ".join(f"{check.name}: {check.detail}" for check in checks if check.holds is False)


def _checked(name: str, check: Callable[[], str]) -> Check:
    try:
        return Check(name, True, check())
    except NotSigned as absent:
        return Check(name, None, str(absent))
    except (MarketplaceError, *_MALFORMED) as error:
        # What was tampered with can be of any form.
        return Check(name, False, str(error) or type(error).__name__)


class _Verified:
    """The checks of one version; each returns a sentence, or raises why it does not hold."""

    def __init__(
        self,
        env: WorkerEnv,
        version: SkillVersion,
        trusted: Mapping[str, PublicKey] | None,
        *,
        whatever_the_key: bool = False,
    ) -> None:
        self._env, self._version, self._trusted = env, version, trusted
        self._whatever_the_key = whatever_the_key

    def archives(self) -> str:
        wanted = {file["path"]: file["sha256"] for file in self._version.manifest}
        for kind, digest, read in (
            ("zip", self._version.zip_sha256, _zip_files),
            ("tar.gz", self._version.tar_sha256, _tar_files),
        ):
            rows = ArchiveBlob.objects.using(self._env.database).filter(sha256=digest)
            content = rows.values_list("content", flat=True).first()
            _require(content is not None, f"the {kind} archive is missing")
            stored = bytes(content or b"")
            _require(hashlib.sha256(stored).hexdigest() == digest, f"the {kind} archive was changed")
            _require(read(stored) == wanted, f"the {kind} archive has other files than were verified")
        return f"both archives are the ones that were stored, with the {len(wanted)} files that were verified"

    def content(self) -> str:
        files = ((file["path"], file["sha256"]) for file in self._version.manifest)
        _require(content_hash(files) == self._version.content_hash, "the files do not have this content hash")
        return f"the files have the content hash {self._version.content_hash}"

    def statement(self) -> str:
        signature, version = self._signature(), self._version
        stated = opened(json.loads(signature.statement), self._key(signature.key, signature.signed_at))
        predicate = stated["predicate"]
        _same(
            "archives", [one["digest"]["sha256"] for one in stated["subject"]], [version.zip_sha256, version.tar_sha256]
        )
        _same("commit", predicate["source"]["digest"], source_digest(version))
        _same("content hash", predicate["contentHash"]["sha256"], version.content_hash)
        _same("version", predicate["skill"]["version"], version.version)
        _same("verdict", predicate["verdict"], verdict_of(version))
        _same("engines", predicate["engines"], named_engines(version.engines))
        signed = f"signed by {signature.key.key_id}{caution(signature.key)}"
        return f"{signed}: commit {version.commit_sha}, verdict {verdict_of(version)}"

    def files(self) -> str:
        signature = self._signature()
        bundle = json.loads(signature.files)
        stated = opened(bundle["dsseEnvelope"], self._key(signature.files_key, signature.signed_at))
        wanted = files_statement(self._version)
        _same("files", stated["predicate"], wanted["predicate"])
        _same("digest of all files", stated["subject"][0]["digest"], wanted["subject"][0]["digest"])
        return f"signed by {signature.files_key.key_id}{caution(signature.files_key)}, as model_signing verifies it"

    def log(self) -> str:
        head = latest_head(self._env)
        leaf = publication_leaf(self._env, self._version)
        if head is None or leaf is None or leaf.number >= head.size:
            raise NotSigned("its publication is in no signed head of the log yet")
        root = self._root(head)
        self._require_told(leaf, head.size, root)
        later = [one.kind for one in leaves_about(self._env, self._version) if one.kind != PUBLISHED]
        since = f"; since then: {', '.join(later)}" if later else ""
        signed = f"in the head signed by {head.key.key_id}{caution(head.key)}"
        return f"entry {leaf.number} of {head.size}, {signed}{since}"

    def told(self) -> str:
        """Compare with the log as it is, signed or not."""
        leaf = publication_leaf(self._env, self._version)
        state = LogState.objects.using(self._env.database).filter(namespace=self._env.name).first()
        if leaf is None or state is None:
            raise NotSigned("the log does not tell of it")
        self._require_told(leaf, state.size, growth_of(state).root)
        return f"entry {leaf.number} of {state.size}"

    def _require_told(self, leaf: LogLeaf, size: int, root: bytes) -> None:
        told: dict[str, Any] = json.loads(leaf.body)
        _same("content hash", told["contentHash"], self._version.content_hash)
        _same("archives", [told["zip"], told["tarGz"]], [self._version.zip_sha256, self._version.tar_sha256])
        _same("verdict", told["verdict"], verdict_of(self._version))
        path = inclusion_proof(self._env, leaf.number, size)
        included = is_included(leaf_hash(leaf.body.encode()), leaf.number, size, path, root)
        _require(included, f"entry {leaf.number} is not in the tree of {size} entries")

    def _signature(self) -> VersionSignature:
        found = find_signature(self._env, self._version)
        if found is None:
            raise NotSigned("it is not signed")
        return found

    def _root(self, head: TreeHead) -> bytes:
        size, root = read_note(head.note, self._key(head.key, head.signed_at))
        _same("size of the log", size, head.size)
        return root

    def _key(self, row: SigningKey, signed_at: datetime) -> PublicKey:
        if row.compromised_since and not self._whatever_the_key and not is_trusted(row, signed_at):
            raise KeyCompromised(
                f"the key {row.key_id} is compromised from {isoformat(row.compromised_since)} on, and signed this at "
                f"{isoformat(signed_at)}: that is not trusted"
            )
        if self._trusted is None:
            return load_public(row.public_key)
        if row.key_id not in self._trusted:
            raise BadSignature(f"the key {row.key_id} is none of those that are trusted")
        return self._trusted[row.key_id]


def _require(holds: bool, sentence: str) -> None:
    if not holds:
        raise DoesNotHold(sentence)


def _same(what: str, signed: object, stored: object) -> None:
    _require(signed == stored, f"what was signed has another {what}")


def _zip_files(content: bytes) -> dict[str, str]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        _require(sum(one.file_size for one in archive.infolist()) <= _MOST_UNPACKED, "the zip archive is too large")
        return {one.filename: hashlib.sha256(archive.read(one)).hexdigest() for one in archive.infolist()}


def _tar_files(content: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        for one in archive:
            _require(one.isreg() and one.size <= _MOST_UNPACKED, "the tar.gz archive has something that is no file")
            file = archive.extractfile(one)
            found[one.name] = hashlib.sha256(file.read() if file else b"").hexdigest()
    return found
