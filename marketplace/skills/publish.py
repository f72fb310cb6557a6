"""Publish a skill: one transaction for the skill, its version, its archives, its search rows and its history."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from django.db import IntegrityError

from marketplace.addresses import UPLOAD_REF
from marketplace.errors import NameReserved, PublicationBlocked, PublicationConflict
from marketplace.likeness.known import find_equal
from marketplace.likeness.published import index_version
from marketplace.models import SKILL_PREFIX, ArchiveBlob, SkillEntry, SkillVersion
from marketplace.provenance.entries import note_published
from marketplace.records import SkillRecord
from marketplace.search.documents import index_body
from marketplace.skills.blocklist import is_blocked
from marketplace.skills.latest import kept_versions, with_latest
from marketplace.skills.publication import PreparedPublication, Publication, PublishedVersion, prepare_publication
from marketplace.skills.publishers import is_uploaded, skill_identity
from marketplace.skills.references import watch_references
from marketplace.skills.reservations import may_have_slug, why_reserved, why_slug_reserved
from marketplace.skills.slugs import slug_candidates
from marketplace.skills.store import (
    Event,
    create_skill,
    in_transaction,
    locked_skill,
    locked_skill_of,
    note,
    slug_is_taken,
    update_skill,
)
from marketplace.skills.versions import choose_version
from marketplace.skills.visibility import light_versions
from marketplace.skills.withdrawal import withdrawn, withheld
from vskill.accounts.audiences import PUBLIC, is_within
from vskill.environments import WorkerEnv
from vskill.kv.errors import VersionConflict

# Refs of the newest commit of the default branch, and of an upload; an earlier release kept none.
_NEWEST: Final = ("", "HEAD", UPLOAD_REF)


def publish_skill(env: WorkerEnv, publication: Publication | PreparedPublication) -> PublishedVersion:
    """Publish one skill, in the caller's transaction on ``env.database`` or else in one of its own.

    A caller with its own transaction passes a prepared publication, so that nobody waits for its locks while archives
    are built.

    Publishing is idempotent: the same submission, the same content of the same skill, and the same content in another
    folder of its repository return the version that already exists. A slug that another skill has or had is never
    reused. Of concurrent publications one wins, and the others start again from what it wrote.

    Raises ``PublicationMismatch`` where the files on disk are not the ones that were verified, ``PublicationBlocked``
    where the block list forbids the repository, its owner or the content, or where another skill got the slug of an
    uploaded one meanwhile, or where others see the skill than it was submitted for, and ``PublicationConflict`` after
    five lost races. Nothing is kept in these cases.
    """
    prepared = prepare_publication(publication) if isinstance(publication, Publication) else publication
    try:
        return in_transaction(env, lambda: _publish(env, prepared))
    except (IntegrityError, VersionConflict) as error:
        name = prepared.publication.name
        raise PublicationConflict(
            f"{name!r} could not be published: others kept writing. Nothing was kept: try it again."
        ) from error


def _publish(env: WorkerEnv, prepared: PreparedPublication) -> PublishedVersion:
    publication = prepared.publication
    versions = SkillVersion.objects.using(env.database).filter(namespace=env.name)
    row, moved_from = _present_skill(env, prepared)
    again = versions.filter(submission_id=publication.submission_id).values_list("skill__key", "version").first()
    if again is not None:
        return PublishedVersion(again[0].removeprefix(SKILL_PREFIX), again[1], created=False)
    if (block := is_blocked(env, publication.repo_url, publication.content_hash)) is not None:
        raise PublicationBlocked(f"{publication.repo_url} is not published: {block}. Nothing was kept.")
    if (bad := find_equal(env, publication.content_hash, prepared.signature.normal_digest)) is not None:
        raise PublicationBlocked(f"its content is known to be bad ({bad.name}): {bad.reason}. Nothing was kept.")
    if row is None and (copied := _published_copy(env, prepared)) is not None:
        return copied
    had = row.record.name if row is not None else None
    if reason := why_reserved(env, publication.repo_url, prepared.version_fields["name"], had=had):
        raise NameReserved(f"{reason} Nothing was kept.")
    known = list(light_versions(versions.filter(skill=row))) if row is not None else []
    if row is not None and moved_from is not None:
        # Written before they can be asked for: from now on the skill's own folder is another one.
        versions.filter(skill=row, skill_path=None).update(skill_path=moved_from)
    for version in known:
        if row is not None and version.content_hash == publication.content_hash:
            _note_places(env, prepared, row, moved_from, version.version)
            return PublishedVersion(row.slug, version.version, created=False)
    if row is not None and not _is_meant_for(row, publication):
        raise PublicationBlocked(
            "it was submitted for fewer people than see the skill now. Nothing was kept. Show the skill to them "
            "alone, or have it submitted again for whom the skill is."
        )
    made = SkillVersion(
        namespace=env.name,
        version=choose_version(
            publication.declared_version,
            [version.version for version in known],
            aside="" if publication.source_ref in _NEWEST and not publication.overtaken else publication.commit_sha,
        ),
        ordinal=max((version.ordinal for version in known), default=0) + 1,
        **prepared.version_fields,
    )
    made.skill = _write_skill(env, prepared, row, [*known, made])
    _store_archives(env, prepared)
    made.save(using=env.database, force_insert=True)
    note_published(env, made)
    index_body(made.skill.pk, made.version, made.skill_md, env.database)
    watch_references(env, made)
    index_version(env, made, prepared.signature)
    return PublishedVersion(made.skill.slug, made.version, created=True)


def _is_meant_for(row: SkillEntry, publication: Publication) -> bool:
    """Return whether everybody who sees the skill in ``row`` is among those whom a submitter chose, if one did."""
    chosen = publication.for_nobody_but
    return chosen == PUBLIC or (row.audience is not None and is_within(row.audience, chosen))


def _present_skill(env: WorkerEnv, prepared: PreparedPublication) -> tuple[SkillEntry | None, str | None]:
    """Return the skill that is published again, locked, and the folder that it has moved from, if it has."""
    row = locked_skill_of(env, prepared.identity)
    publication = prepared.publication
    if row is not None or publication.continues is None:
        return row, None
    row = locked_skill_of(env, skill_identity(publication.repo_url, publication.continues))
    # It may have been found in its old folder again since this submission was accepted.
    if row is None or not row.record.source_gone_at:
        return None, None
    return row, publication.continues


def _published_copy(env: WorkerEnv, prepared: PreparedPublication) -> PublishedVersion | None:
    """Return the version of another skill with the same content from the same repository, and note the new place.

    One content in two folders of one repository is one skill. Raises ``PublicationBlocked`` where that version is
    withdrawn, because another folder does not make it another skill.
    """
    publication = prepared.publication
    versions = SkillVersion.objects.using(env.database).filter(namespace=env.name)
    same = versions.filter(content_hash=publication.content_hash, skill__repo_url=publication.repo_url)
    first = same.order_by("pk").values_list("pk", flat=True).first()
    if first is None:
        return None
    version = light_versions(versions.filter(pk=first)).select_related("skill").get()
    if reason := withheld(version.skill) or withdrawn(version):
        raise PublicationBlocked(f"the same content in {version.skill_path or '.'} is withdrawn. {reason}")
    row = locked_skill(env, version.skill.slug)
    _note_places(env, prepared, row, None, version.version)
    return PublishedVersion(row.slug, version.version, created=False)


def _note_places(
    env: WorkerEnv, prepared: PreparedPublication, row: SkillEntry, moved_from: str | None, version: str
) -> None:
    """Write where the content of a skill that is already published lies as well, or that it has moved."""
    publication, record = prepared.publication, row.record
    if not _is_meant_for(row, publication):
        # Who sees the skill is not told where else its content lies.
        return
    places = {*record.also_at, *publication.also_at, publication.skill_path} - {moved_from}
    if moved_from is not None:
        record = replace(_there(record), skill_path=publication.skill_path, identity=prepared.identity)
    also_at = tuple(sorted(places - {record.skill_path}))
    noted = replace(record, also_at=also_at)
    if noted == row.record:
        return
    reason = f"from {moved_from or '.'} to {noted.skill_path or '.'}" if moved_from is not None else ", ".join(also_at)
    action = "moved" if moved_from is not None else "found in other folders"
    note(env, row, noted, Event(action, publication.actor, reason, version=version))


def _there(record: SkillRecord) -> SkillRecord:
    """Return the record of a skill that is in its source: what is published just now is."""
    return replace(record, source_gone_at="", source_gone_commit="")


def _write_skill(
    env: WorkerEnv, prepared: PreparedPublication, row: SkillEntry | None, versions: list[SkillVersion]
) -> SkillEntry:
    """Create or update the skill whose ``versions`` end with the one that is being published."""
    publication = prepared.publication
    event = Event("published", publication.actor, version=versions[-1].version)
    source: dict[str, Any] = {
        "repo_url": publication.repo_url,
        "skill_path": publication.skill_path,
        "identity": prepared.identity,
        "also_at": tuple(sorted(publication.also_at)),
    }
    if row is not None:
        record = replace(with_latest(_there(row.record), versions), **source)
        kept = kept_versions(versions)
        update_skill(env, row, record, event, kept=(kept - 1, kept))
        return row
    record = SkillRecord(
        slug=_free_slug(env, prepared),
        name=prepared.version_fields["name"],
        publisher=prepared.publisher.identity,
        publisher_handle=prepared.publisher.handle,
        audience=publication.audience,
        **source,
    )
    return create_skill(env, with_latest(record, versions), event)


def _free_slug(env: WorkerEnv, prepared: PreparedPublication) -> str:
    name, publisher = prepared.version_fields["name"], prepared.publisher
    candidates = list(slug_candidates(name, publisher.owner, publisher.repository, prepared.identity))
    # The one that was planned first: a skill that shares a name with another of its repository leaves it to that one.
    planned = prepared.publication.planned_slug
    if is_uploaded(prepared.publication.repo_url):
        # Whoever uploads a skill says what it is called, and was told that this is its name.
        if slug_is_taken(env, planned):
            raise PublicationBlocked(f"another skill was published as {planned} meanwhile. Upload it by another name.")
        if reason := why_slug_reserved(env, prepared.publication.repo_url, planned):
            raise NameReserved(f"{reason} Nothing was kept.")
        return planned
    for slug in sorted(candidates, key=lambda slug: slug != planned):
        if may_have_slug(env, prepared.publication.repo_url, slug) and not slug_is_taken(env, slug):
            return slug
    raise VersionConflict(f"Every name for {name!r} is held.")


def _store_archives(env: WorkerEnv, prepared: PreparedPublication) -> None:
    # In the order of their digests, so that two publications with equal archives cannot deadlock.
    archives = sorted({prepared.zip, prepared.tar}, key=lambda archive: archive.sha256)
    ArchiveBlob.objects.using(env.database).bulk_create(
        [ArchiveBlob(sha256=one.sha256, content=one.content, size=len(one.content)) for one in archives],
        ignore_conflicts=True,
    )
