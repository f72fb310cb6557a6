"""What is signed of a version: an in-toto statement of where it is from, and OpenSSF Model Signing's of its files."""

from __future__ import annotations

import hashlib
import json
from pathlib import PurePosixPath
from typing import Any, Final

from marketplace.addresses import UPLOAD_REF, repository_of
from marketplace.judgement import verdict_of
from marketplace.models import SigningKey, SkillVersion, VersionSignature
from marketplace.provenance.dsse import envelope
from marketplace.provenance.entries import named_engines
from marketplace.provenance.keys import SigningKeys, key_id, public_pem
from vskill.environments import WorkerEnv
from vskill.kv.clock import isoformat

STATEMENT: Final = "https://in-toto.io/Statement/v1"
PUBLICATION: Final = "urn:vskill:publication:v1"
MODEL_SIGNATURE: Final = "https://model_signing/signature/v1.0"
_BUNDLE: Final = "application/vnd.dev.sigstore.bundle.v0.3+json"


def publication_statement(env: WorkerEnv, version: SkillVersion) -> dict[str, Any]:
    """Return the in-toto statement about a version; its subjects are the archives."""
    skill, slug = version.skill, version.skill.slug
    archives = (("zip", version.zip_sha256), ("tar.gz", version.tar_sha256))
    path = skill.skill_path if version.skill_path is None else version.skill_path
    repository = repository_of(skill.repo_url, version.repo_url)
    source = {
        "uri": repository if version.source_ref == UPLOAD_REF else f"git+{repository}",
        "digest": source_digest(version),
        "ref": version.source_ref,
        "path": path,
    }
    return {
        "_type": STATEMENT,
        "subject": [
            {"name": f"{slug}-{version.version}.{kind}", "digest": {"sha256": digest}} for kind, digest in archives
        ],
        "predicateType": PUBLICATION,
        "predicate": {
            "registry": env.public_url,
            "skill": {"name": slug, "version": version.version, "identity": skill.identity},
            "source": source,
            "contentHash": {"sha256": version.content_hash},
            "verdict": verdict_of(version),
            "engines": named_engines(version.engines),
            "publishedAt": isoformat(version.created_at),
        },
    }


def source_digest(version: SkillVersion) -> dict[str, str]:
    """Return by what a version is known at its source: a commit of git, or the content hash of an upload."""
    return {"sha256" if version.source_ref == UPLOAD_REF else "gitCommit": version.commit_sha}


def files_statement(version: SkillVersion) -> dict[str, Any]:
    """Return the statement of OpenSSF Model Signing about the files of a version.

    It has every file: those that the tool ignores unless it is told otherwise, such as ``.gitignore``, are installed
    like any other.
    """
    # In the order of the tool: by the parts of paths.
    files = sorted(version.manifest, key=lambda file: PurePosixPath(file["path"]).parts)
    resources = [{"name": file["path"], "algorithm": "sha256", "digest": file["sha256"]} for file in files]
    root = hashlib.sha256(b"".join(bytes.fromhex(one["digest"]) for one in resources)).hexdigest()
    return {
        "_type": STATEMENT,
        "subject": [{"name": version.skill.slug, "digest": {"sha256": root}}],
        "predicateType": MODEL_SIGNATURE,
        "predicate": {
            "serialization": {"method": "files", "hash_type": "sha256", "allow_symlinks": False},
            "resources": resources,
        },
    }


def signature_of(
    env: WorkerEnv, version: SkillVersion, keys: SigningKeys, rows: tuple[SigningKey, SigningKey]
) -> VersionSignature:
    """Return the signatures of a version, to be written; ``rows`` are those of both keys."""
    pem = public_pem(keys.files.public_key())
    bundle = {
        "mediaType": _BUNDLE,
        "verificationMaterial": {"publicKey": {"hint": key_id(pem)}, "tlogEntries": []},
        # The tool knows its key by the hint.
        "dsseEnvelope": envelope(files_statement(version), keys.files, keyid=""),
    }
    return VersionSignature(
        namespace=env.name,
        version=version,
        statement=json.dumps(envelope(publication_statement(env, version), keys.statements)),
        key=rows[0],
        files=json.dumps(bundle),
        files_key=rows[1],
    )
