"""Publish a skill: one transaction for the skill, its version, its archives, its search rows and its history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from django.db import IntegrityError

from marketplace.artifacts.archives import Archive, build_tar_gz, build_zip
from marketplace.artifacts.fingerprints import fingerprint
from marketplace.artifacts.verified_files import read_members
from marketplace.errors import ArchiveError, PublicationBlocked, PublicationConflict, PublicationMismatch
from marketplace.models import ArchiveBlob, SkillEntry, SkillVersion
from marketplace.records import SkillRecord
from marketplace.skills.blocklist import is_blocked
from marketplace.skills.latest import with_latest
from marketplace.skills.publishers import Publisher, publisher_of, skill_identity
from marketplace.skills.slugs import slug_candidates
from marketplace.skills.source_changes import adopt_moved_skill
from marketplace.skills.store import Event, create_skill, in_transaction, locked_skill_of, slug_is_taken, update_skill
from marketplace.skills.versions import choose_version
from vskill.environments import WorkerEnv
from vskill.hidden_characters import reveal_hidden
from vskill.kv.codec import storable
from vskill.kv.errors import VersionConflict


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

    ``verdict`` and ``verdict_summary``, ``findings``, ``engines`` (``name``, ``version``, ``status``) and
    ``capabilities`` are copied into the version as they are. ``actor`` is who publishes, for the history.
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
    source_ref: str = ""
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
    publisher: Publisher
    identity: str
    zip: Archive
    tar: Archive
    version_fields: dict[str, Any]


def publish_skill(env: WorkerEnv, publication: Publication | PreparedPublication) -> PublishedVersion:
    """Publish one skill, in the caller's transaction on ``env.database`` or else in one of its own.

    A caller with its own transaction passes a prepared publication, so that nobody waits for its locks while archives
    are built.

    Publishing is idempotent: the same submission, and the same content of the same skill, return the version that
    already exists. A slug that another skill has or had is never reused. Of concurrent publications one wins, and the
    others start again from what it wrote.

    Raises ``PublicationMismatch`` where the files on disk are not the ones that were verified, ``PublicationBlocked``
    where the block list forbids the repository, its owner or the content, and ``PublicationConflict`` after five lost
    races. Nothing is kept in these cases.
    """
    prepared = prepare_publication(publication) if isinstance(publication, Publication) else publication
    try:
        return in_transaction(env, lambda: _publish(env, prepared))
    except (IntegrityError, VersionConflict) as error:
        name = prepared.publication.name
        raise PublicationConflict(
            f"{name!r} could not be published: others kept writing. Nothing was kept: try it again."
        ) from error


def prepare_publication(publication: Publication) -> PreparedPublication:
    """Read the files and build the archives; raise ``PublicationMismatch`` where they are not what was verified."""
    members = read_members(publication.root, publication.files)
    try:
        zip_archive, tar_archive = build_zip(members), build_tar_gz(members)
    except ArchiveError as error:
        raise PublicationMismatch(f"{error} Nothing was published.") from error
    return PreparedPublication(
        publication,
        publisher_of(publication.repo_url),
        skill_identity(publication.repo_url, publication.skill_path),
        zip_archive,
        tar_archive,
        version_fields={
            "submission_id": publication.submission_id,
            "declared_version": storable(publication.declared_version)[:64],
            "commit_sha": publication.commit_sha,
            "source_ref": _line(publication.source_ref, 300),
            "content_hash": publication.content_hash,
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
            "verdict_summary": storable(publication.verdict_summary),
            "capabilities": list(publication.capabilities),
            "engines": list(publication.engines),
            "findings": list(publication.findings),
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


def _publish(env: WorkerEnv, prepared: PreparedPublication) -> PublishedVersion:
    publication = prepared.publication
    versions = SkillVersion.objects.using(env.database).filter(namespace=env.name)
    row = locked_skill_of(env, prepared.identity)
    if row is None and adopt_moved_skill(
        env,
        publication.repo_url,
        publication.skill_path,
        prepared.version_fields["name"],
        actor=publication.actor,
    ):
        row = locked_skill_of(env, prepared.identity)
    again = versions.filter(submission_id=publication.submission_id).select_related("skill").first()
    if again is not None:
        return PublishedVersion(again.skill.slug, again.version, created=False)
    if (block := is_blocked(env, publication.repo_url, publication.content_hash)) is not None:
        raise PublicationBlocked(f"{publication.repo_url} is not published: {block}. Nothing was kept.")
    known = list(versions.filter(skill=row).defer("skill_md", "findings", "manifest")) if row is not None else []
    for version in known:
        if row is not None and version.content_hash == publication.content_hash:
            return PublishedVersion(row.slug, version.version, created=False)
    made = SkillVersion(
        namespace=env.name,
        version=choose_version(publication.declared_version, [version.version for version in known]),
        ordinal=max((version.ordinal for version in known), default=0) + 1,
        **prepared.version_fields,
    )
    made.skill = _write_skill(env, prepared, row, [*known, made])
    _store_archives(env, prepared)
    made.save(using=env.database, force_insert=True)
    return PublishedVersion(made.skill.slug, made.version, created=True)


def _write_skill(
    env: WorkerEnv, prepared: PreparedPublication, row: SkillEntry | None, versions: list[SkillVersion]
) -> SkillEntry:
    """Create or update the skill whose ``versions`` end with the one that is being published."""
    publication = prepared.publication
    event = Event("published", publication.actor, version=versions[-1].version)
    if row is not None:
        record = replace(with_latest(row.record, versions), repo_url=publication.repo_url, source_missing="")
        update_skill(env, row, record, event)
        return row
    record = SkillRecord(
        slug=_free_slug(env, prepared),
        name=prepared.version_fields["name"],
        publisher=prepared.publisher.identity,
        publisher_handle=prepared.publisher.handle,
        repo_url=publication.repo_url,
        skill_path=publication.skill_path,
        identity=prepared.identity,
    )
    return create_skill(env, with_latest(record, versions), event)


def _free_slug(env: WorkerEnv, prepared: PreparedPublication) -> str:
    name, publisher = prepared.version_fields["name"], prepared.publisher
    for slug in slug_candidates(name, publisher.owner, publisher.repository, prepared.identity):
        if not slug_is_taken(env, slug):
            return slug
    raise VersionConflict(f"Every name for {name!r} is held.")


def _store_archives(env: WorkerEnv, prepared: PreparedPublication) -> None:
    # In the order of their digests, so that two publications with equal archives cannot deadlock.
    archives = sorted({prepared.zip, prepared.tar}, key=lambda archive: archive.sha256)
    ArchiveBlob.objects.using(env.database).bulk_create(
        [ArchiveBlob(sha256=one.sha256, content=one.content, size=len(one.content)) for one in archives],
        ignore_conflicts=True,
    )
