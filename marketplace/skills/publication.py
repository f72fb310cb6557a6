"""What is published: a verified skill, and all that is computed from it before a transaction begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marketplace.artifacts.archives import Archive, build_tar_gz, build_zip
from marketplace.artifacts.fingerprints import fingerprint
from marketplace.artifacts.verified_files import read_members
from marketplace.errors import ArchiveError, PublicationMismatch
from marketplace.likeness.signature import Signature, signature
from marketplace.skills.publishers import Publisher, publisher_of, skill_identity
from vskill.accounts.audiences import PUBLIC
from vskill.hidden_characters import reveal_hidden
from vskill.kv.codec import storable


@dataclass(frozen=True)
class PublishedFile:
    """A file as it was verified.

    ``path`` is relative to the root of the skill, with slashes; ``size`` is in bytes, ``sha256`` in hex.
    """

    path: str
    size: int
    sha256: str
    executable: bool = False


@dataclass(frozen=True)
class Publication:
    """A verified skill that is to be published, as a submission hands it over.

    ``submission_id`` is published at most once. ``repo_url`` is the normalised URL of the repository, ``skill_path``
    the skill's folder in it, ``commit_sha`` the commit that was verified, ``source_ref`` the branch or tag that it is
    on (see ``addresses.ref_words``), and ``content_hash`` the SHA-256 over all files (hex).

    ``name`` to ``metadata`` and ``declared_version`` come from the front matter of SKILL.md, whose text is
    ``skill_md``; the version may be empty or no version at all.

    ``root`` is the directory that holds the files. Each is read from there, and has to be what ``files`` says.

    ``also_at`` are the other folders of the repository with the same files. ``continues`` is the folder, now gone, from
    which the skill was published before: it keeps its slug, versions and downloads; ``None`` for any other skill.
    ``overtaken`` says that what was submitted later, of the same folder, is published already: its commit is the newer
    one, and leads. ``planned_slug`` is the slug that the submitter was told, empty where none was.

    ``verdict`` and ``verdict_summary``, ``findings``, ``engines`` (``name``, ``version``, ``status``),
    ``capabilities``, ``contract`` and ``scan_key`` are copied into the version as they are. ``contract`` is what the
    skill declares beside what it does and refers to, ``None`` where no engine has said it. The ``signature`` is
    computed where it is not given. ``changelog`` is what its uploader says of the version, empty for a repository.
    ``audience`` is to whom a new skill is shown, empty for everybody; one that is published already keeps its own.
    ``for_nobody_but`` are those whom its submitter chose, empty where nobody did: it becomes no version of a skill
    that others see. ``actor`` is who publishes, for the history.
    """

    submission_id: str
    repo_url: str
    skill_path: str
    commit_sha: str
    content_hash: str
    name: str
    description: str
    license: str
    compatibility: str
    metadata: Mapping[str, str]
    declared_version: str
    files: tuple[PublishedFile, ...]
    root: Path
    skill_md: str
    verdict: str
    verdict_summary: str
    findings: tuple[dict[str, Any], ...] = ()
    engines: tuple[dict[str, Any], ...] = ()
    capabilities: tuple[str, ...] = ()
    contract: Mapping[str, Any] | None = None
    source_ref: str = ""
    overtaken: bool = False
    also_at: tuple[str, ...] = ()
    continues: str | None = None
    planned_slug: str = ""
    scan_key: str = ""
    changelog: str = ""
    audience: str = PUBLIC
    for_nobody_but: str = PUBLIC
    signature: Signature | None = None
    actor: str = "system"


@dataclass(frozen=True)
class PublishedVersion:
    """The slug and version of a publication; ``created`` is false where it had been published before."""

    slug: str
    version: str
    created: bool


@dataclass(frozen=True)
class PreparedPublication:
    """A publication with everything that is computed from it before a transaction begins.

    ``identity`` tells whether two publications are the same skill (see ``skill_identity``). ``version_fields`` are the
    columns of the ``SkillVersion`` that do not depend on what is already published.
    """

    publication: Publication
    signature: Signature
    publisher: Publisher
    identity: str
    zip: Archive
    tar: Archive
    version_fields: dict[str, Any]


def prepare_publication(publication: Publication) -> PreparedPublication:
    """Read the files and build the archives; raise ``PublicationMismatch`` where they are not what was verified."""
    members = read_members(publication.root, publication.files)
    try:
        zip_archive, tar_archive = build_zip(members), build_tar_gz(members)
    except ArchiveError as error:
        raise PublicationMismatch(f"{error} Nothing was published.") from error
    made = publication.signature or signature((member.path, member.content) for member in members)
    return PreparedPublication(
        publication,
        made,
        publisher_of(publication.repo_url),
        skill_identity(publication.repo_url, publication.skill_path),
        zip_archive,
        tar_archive,
        version_fields={
            "submission_id": publication.submission_id,
            "skill_path": publication.skill_path,
            "declared_version": storable(publication.declared_version)[:64],
            "commit_sha": publication.commit_sha,
            "source_ref": _line(publication.source_ref, 300),
            "content_hash": publication.content_hash,
            "normal_digest": made.normal_digest,
            "fingerprint": fingerprint((file.path, file.sha256) for file in publication.files),
            "name": _line(publication.name, 200),
            "description": _line(publication.description),
            "license": _line(publication.license, 200),
            "compatibility": _line(publication.compatibility, 500),
            "metadata": {_line(str(key)): _line(str(value)) for key, value in publication.metadata.items()},
            "manifest": [
                {"path": file.path, "size": file.size, "sha256": file.sha256, "executable": file.executable}
                for file in sorted(publication.files, key=lambda file: file.path.encode())
            ],
            "skill_md": storable(publication.skill_md),
            "verdict": publication.verdict,
            "scan_key": publication.scan_key,
            "changelog": _line(publication.changelog),
            "verdict_summary": storable(publication.verdict_summary),
            "capabilities": list(publication.capabilities),
            "engines": list(publication.engines),
            "findings": list(publication.findings),
            "contract": None if publication.contract is None else dict(publication.contract),
            "size": sum(file.size for file in publication.files),
            "zip_sha256": zip_archive.sha256,
            "zip_size": len(zip_archive.content),
            "tar_sha256": tar_archive.sha256,
            "tar_size": len(tar_archive.content),
        },
    )


def _line(text: str, length: int | None = None) -> str:
    # Pages, lists and the terminals of clients show this text; the archive has the original.
    return storable(reveal_hidden(" ".join(text.split())))[:length]
