"""Take an upload: which version it is, and its submission with its message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from marketplace.addresses import UPLOAD_REF
from marketplace.models import SkillVersion
from marketplace.skills.publishers import skill_identity
from marketplace.skills.store import skills_of_identity
from marketplace.skills.versions import parse_version
from marketplace.skills.visibility import light_versions
from marketplace.skills.withdrawal import withdrawn, withheld
from submissions.discovered import DiscoveredSkill, Discovery
from submissions.intake import IntakeBusy, Outcome, accept_one
from submissions.source.uploaded_files import UploadedFiles
from submissions.uploads.bundle import FileList
from submissions.uploads.errors import UploadRefused
from submissions.uploads.owners import Wish, address_for
from submissions.uploads.stored import ACCOUNT_OF_UPLOAD, CHANGELOG_OF_UPLOAD, VERSION_OF_UPLOAD, keep
from submissions.verification.found_skills import find_skills
from vskill.environments import WorkerEnv
from vskill.hidden_characters import visible

_KEPT: Final = "Nothing was kept."


@dataclass(frozen=True)
class Taken:
    """What became of an upload: its submission, and whether the version is published already."""

    slug: str
    version: str
    submission_id: str
    is_published: bool


async def found_skill(contents: Mapping[str, bytes]) -> tuple[str, str]:
    """Return the name and the description of an uploaded skill.

    Raises ``UploadRefused`` with what its author has to change.
    """
    found = [one for one in await find_skills(UploadedFiles(contents)) if one.path == ""]
    if not found or found[0].problems:
        problems = "; ".join(found[0].problems) if found else "there is no SKILL.md at its root"
        raise UploadRefused(422, f"The skill cannot be checked: {problems}. {_KEPT}")
    return found[0].name, found[0].description


def known(env: WorkerEnv, user: AbstractBaseUser, wish: Wish, files: FileList) -> Taken | None:
    """Return the published version that these very ``files`` are, or ``None`` where they are new to ``env``.

    Raises ``UploadRefused`` where the account may not publish them, or not as this version.
    """
    return _known(env, address_for(env, user, wish), wish.slug, _version(wish), files.digest)


def take(
    env: WorkerEnv,
    user: AbstractBaseUser,
    wish: Wish,
    files: FileList,
    contents: Mapping[str, bytes],
    described: tuple[str, str],
) -> Taken:
    """Keep the upload that ``user`` wants published in ``env``, and submit it, in one transaction.

    Call it on a thread that writes. ``files`` are the list of ``contents``; the same ones again are answered with the
    submission that they have. ``described`` is what ``found_skill`` returned. Raises ``UploadRefused``, having kept
    nothing.
    """
    version, address = _version(wish), address_for(env, user, wish)
    if (published := _known(env, address, wish.slug, version, files.digest)) is not None:
        return published
    name, description = described
    skill = DiscoveredSkill("", name, description, (), files.digest, slug=wish.slug)
    discovery = Discovery(address, files.digest, (skill,), UPLOAD_REF, named=True)
    fields: dict[str, Any] = {VERSION_OF_UPLOAD: version, ACCOUNT_OF_UPLOAD: int(user.pk)}
    if wish.changelog:
        fields[CHANGELOG_OF_UPLOAD] = wish.changelog
    username = user.get_username()
    with transaction.atomic(using=env.database):
        # Before the submission: a bundle that nothing needs costs space, a submission without one could never end.
        keep(env, int(user.pk), address, files, contents)
        try:
            accepted = accept_one(
                env, discovery, skill, source="upload", actor="api", submitter=username, more_fields=fields
            )
        except IntakeBusy as error:
            raise UploadRefused(503, str(error)) from error
        submission = accepted.submission
        if submission is None:
            status = 409 if accepted.outcome is Outcome.WITHDRAWN else 403
            raise UploadRefused(status, f"{accepted.reason} {_KEPT}")
        same = (submission.text("sourceDigest"), submission.text(VERSION_OF_UPLOAD)) == (files.digest, version)
        if accepted.outcome is Outcome.DUPLICATE and not same:
            raise UploadRefused(
                409,
                f"{wish.slug} {submission.text(VERSION_OF_UPLOAD)} is still being checked or waits for a reviewer: "
                f"one version of a skill is checked at a time. {_KEPT} Upload this one once that has ended.",
            )
        return Taken(wish.slug, version, submission.id, accepted.outcome is Outcome.ALREADY_VERIFIED)


def _version(wish: Wish) -> str:
    version = parse_version(wish.version)
    if version is None or "+" in wish.version:
        raise UploadRefused(400, f"{visible(wish.version, 40)!r} is no semantic version, such as 1.0.0. {_KEPT}")
    return str(version)


def _known(env: WorkerEnv, address: str, slug: str, version: str, digest: str) -> Taken | None:
    """Return the published version that these files are; raise ``UploadRefused`` where they contradict one."""
    skill = skills_of_identity(env, skill_identity(address, "")).first()
    if skill is None:
        return None
    rows = light_versions(SkillVersion.objects.using(env.database).filter(namespace=env.name, skill=skill))
    same_version = rows.filter(version=version).first()
    # What stands for a commit is the digest of the upload; the content lacks the files of an operating system.
    if same_version is not None and same_version.commit_sha != digest:
        raise UploadRefused(
            409,
            f"{slug} {version} exists already with other files, and a version never changes. Choose a higher one. "
            f"{_KEPT}",
        )
    if same_version is not None:
        if reason := withheld(skill) or withdrawn(same_version):
            raise UploadRefused(409, f"{reason} {_KEPT}")
        return Taken(slug, version, same_version.submission_id, is_published=True)
    same_files = rows.filter(commit_sha=digest).first()
    if same_files is not None:
        raise UploadRefused(
            409, f"These files are {slug} {same_files.version} already. Change something to publish {version}. {_KEPT}"
        )
    return None
