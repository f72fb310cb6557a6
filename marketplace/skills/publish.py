"""Publish a skill: one transaction for the skill, its version, its archives, its search rows and its history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from django.db import IntegrityError, transaction

from marketplace.artifacts.archives import Archive, Member, build_tar_gz, build_zip
from marketplace.artifacts.fingerprints import fingerprint
from marketplace.artifacts.verified_files import read_members
from marketplace.errors import ArchiveError, PublicationBlocked, PublicationConflict, PublicationMismatch
from marketplace.models import ALIAS_PREFIX, SKILL_PREFIX, ArchiveBlob, SkillEntry, SkillVersion
from marketplace.records import SkillRecord
from marketplace.skills.blocklist import is_blocked
from marketplace.skills.publishers import Publisher, publisher_of, skill_identity
from marketplace.skills.slugs import slug_candidates
from marketplace.skills.store import create_skill, now_text, record_event, skill_namespace, update_skill, with_latest
from marketplace.skills.versions import choose_version
from vskill.environments import WorkerEnv
from vskill.hidden_characters import reveal_hidden
from vskill.kv.codec import storable
from vskill.kv.errors import VersionConflict

ATTEMPTS: Final = 5


@dataclass(frozen=True)
class PublishedFile:
    """A file as it was verified; ``path`` is relative to the root of the skill, ``sha256`` is in hex."""

    path: str
    size: int
    sha256: str
    executable: bool = False


@dataclass(frozen=True)
class Publication:
    """What a submission hands over once it has passed.

    ``root`` is the directory that holds the files; each is read from there and must be what ``files`` says.
    ``findings``, ``engines`` (name, version, status) and ``capabilities`` are copied into the version as they are.
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
    actor: str = "system"


@dataclass(frozen=True)
class PublishedVersion:
    """Where a publication is to be found; ``created`` is false where it had been published before."""

    slug: str
    version: str
    created: bool


@dataclass(frozen=True)
class PreparedPublication:
    """A publication with all that is computed from it before a transaction begins."""

    publication: Publication
    publisher: Publisher
    identity: str
    zip: Archive
    tar: Archive
    described: dict[str, Any] = field(default_factory=dict)


def publish_skill(env: WorkerEnv, publication: Publication | PreparedPublication) -> PublishedVersion:
    """Publish one skill, inside the caller's transaction on ``env.database`` or in one of its own.

    A caller with a transaction of its own prepares the publication before it, so that nobody waits for its locks while
    archives are built.

    Twice is once: the same submission, or the same content of the same skill, gives the version that is there. A
    stranger's name is never overwritten. Two processes at once: one wins, and the other sees what it wrote.

    Raises ``PublicationMismatch`` where the files on disk are not the ones that were verified, ``PublicationBlocked``
    where the block list says so, ``PublicationConflict`` after five lost races. Nothing is kept in these cases.
    """
    package = prepare_publication(publication) if isinstance(publication, Publication) else publication
    for _attempt in range(ATTEMPTS):
        try:
            with transaction.atomic(using=env.database):
                return _publish(env, package)
        except (IntegrityError, VersionConflict):
            # Another process was first with this skill, name or version; the next look sees what it wrote.
            continue
    raise PublicationConflict(
        f"{package.publication.name!r} could not be published: others kept writing. Nothing was kept: try it again."
    )


def prepare_publication(publication: Publication) -> PreparedPublication:
    """Read the files and build the archives; raise ``PublicationMismatch`` where they are not what was verified."""
    members: list[Member] = read_members(publication.root, publication.files)
    try:
        archives = build_zip(members), build_tar_gz(members)
    except ArchiveError as error:
        raise PublicationMismatch(f"{error} Nothing was published.") from error
    return PreparedPublication(
        publication,
        publisher_of(publication.repo_url),
        skill_identity(publication.repo_url, publication.skill_path),
        *archives,
        described={
            "commit_sha": publication.commit_sha,
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
            "skill_md": _text(publication.skill_md),
            "verdict": publication.verdict,
            "verdict_summary": _text(publication.verdict_summary),
            "capabilities": list(publication.capabilities),
            "engines": list(publication.engines),
            "findings": list(publication.findings),
            "size": sum(file.size for file in publication.files),
        },
    )


def _line(text: str, length: int | None = None) -> str:
    # Pages, lists and the terminals of clients show these; the archive keeps the file as it is.
    return _text(reveal_hidden(" ".join(text.split())), length)


def _text(text: str, length: int | None = None) -> str:
    # The archive keeps the file as it is.
    return storable(text)[:length]


def _publish(env: WorkerEnv, package: PreparedPublication) -> PublishedVersion:
    publication = package.publication
    versions = SkillVersion.objects.using(env.database).filter(namespace=env.name)
    row = _skill_of(env, package.identity)
    again = versions.filter(submission_id=publication.submission_id).select_related("skill").first()
    if again is not None:
        return PublishedVersion(again.skill.slug, again.version, created=False)
    if (block := is_blocked(env, publication.repo_url, publication.content_hash)) is not None:
        raise PublicationBlocked(f"{publication.repo_url} is not published: {block}. Nothing was kept.")
    known = list(versions.filter(skill=row).defer("skill_md", "findings", "manifest")) if row is not None else []
    for version in known:
        if row is not None and version.content_hash == publication.content_hash:
            return PublishedVersion(row.slug, version.version, created=False)
    number = choose_version(publication.declared_version, [version.version for version in known])
    made = SkillVersion(
        namespace=env.name,
        version=number,
        ordinal=max((version.ordinal for version in known), default=0) + 1,
        submission_id=publication.submission_id,
        declared_version=_text(publication.declared_version, 64),
        zip_sha256=package.zip.sha256,
        zip_size=len(package.zip.content),
        tar_sha256=package.tar.sha256,
        tar_size=len(package.tar.content),
        **package.described,
    )
    row, record = _write_skill(env, package, row, [*known, made])
    _keep_archives(env, package)
    made.skill = row
    made.save(using=env.database, force_insert=True)
    record_event(
        env, f"{SKILL_PREFIX}{record.slug}", "published", actor=publication.actor, reason="", row=row, version=number
    )
    return PublishedVersion(record.slug, number, created=True)


def _skill_of(env: WorkerEnv, identity: str) -> SkillEntry | None:
    rows = SkillEntry.objects.using(env.database).filter(namespace=env.name, identity=identity)
    # Locked, so that publications of one skill queue up instead of losing races.
    return rows.select_for_update().first()


def _write_skill(
    env: WorkerEnv, package: PreparedPublication, row: SkillEntry | None, versions: list[SkillVersion]
) -> tuple[SkillEntry, SkillRecord]:
    now = now_text(env)
    if row is not None:
        record = replace(with_latest(row.record, versions), repo_url=package.publication.repo_url, updated_at=now)
        update_skill(env, row, record)
        return row, record
    blank = SkillRecord(
        slug=_free_slug(env, package),
        name=package.described["name"],
        publisher=package.publisher.identity,
        publisher_handle=package.publisher.handle,
        repo_url=package.publication.repo_url,
        skill_path=package.publication.skill_path,
        identity=package.identity,
        published_at=now,
        updated_at=now,
    )
    record = with_latest(blank, versions)
    row = create_skill(env, record)
    if skill_namespace(env).get_sync(f"{ALIAS_PREFIX}{record.slug}").version:
        # A rename left this alias between our look and our write; a stranger's old address must not lead here.
        raise VersionConflict(f"{record.slug!r} has become the former name of another skill.")
    return row, record


def _free_slug(env: WorkerEnv, package: PreparedPublication) -> str:
    for slug in slug_candidates(
        package.described["name"], package.publisher.owner, package.publisher.repository, package.identity
    ):
        keys = (f"{SKILL_PREFIX}{slug}", f"{ALIAS_PREFIX}{slug}")
        if not any(skill_namespace(env).get_sync(key).version for key in keys):
            return slug
    raise VersionConflict(f"Every name for {package.described['name']!r} is held.")


def _keep_archives(env: WorkerEnv, package: PreparedPublication) -> None:
    # In the order of their digests, so that two publications of equal archives cannot wait for each other.
    archives = sorted({package.zip, package.tar}, key=lambda archive: archive.sha256)
    ArchiveBlob.objects.using(env.database).bulk_create(
        [ArchiveBlob(sha256=one.sha256, content=one.content, size=len(one.content)) for one in archives],
        ignore_conflicts=True,
    )
