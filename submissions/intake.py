"""The one way in: the form, the API, the command and the admin submit through here.

A submission and its queue message are written in one transaction, so that "accepted" always means both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from django.core import signing
from django.db import IntegrityError, transaction

from marketplace.skills.blocklist import is_blocked
from marketplace.skills.publishers import skill_identity
from marketplace.skills.withdrawal import why_withdrawn
from submissions import messages
from submissions.models import SubmissionEntry
from submissions.source.fetching import fetch, repository_url, scratch_folder
from submissions.source.git import Snapshot
from submissions.source.tree_entries import below, odd_name
from submissions.source.urls import RepositoryURL
from submissions.states import ACTIVE_STATES, State
from submissions.store.queries import live_submission, read_submission
from submissions.store.records import Submission
from submissions.store.transitions import create_submission, repeat, transition
from submissions.verification.packages import FoundSkill, find_skills
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.hidden_characters import visible
from vskill.kv.errors import VersionConflict
from vskill.kv.threads import writers

_TOKEN_SALT = "vskill.intake.discovery"  # noqa: S105 - names what is signed; the key is SECRET_KEY
TOKEN_HOURS = 6
_SAME_CONTENT = "(The same content is not published again: change it, and submit it then.)"


class NoSkillFound(VskillError):
    """A repository holds no skill, or not the one that was asked for; nothing was submitted."""

    code = "no_skill_found"


class DiscoveryExpired(VskillError):
    """The list of skills that was chosen from is too old or was not made here; nothing was submitted."""

    code = "discovery_expired"


class IntakeBusy(VskillError):
    """A skill changed again and again while it was being submitted; nothing was written."""

    code = "intake_busy"


class Outcome(StrEnum):
    """What became of one skill that was submitted."""

    CREATED = "created"
    DUPLICATE = "duplicate"
    ALREADY_VERIFIED = "already_verified"
    BLOCKED = "blocked"
    INVALID = "invalid"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True)
class DiscoveredSkill:
    """A skill in a repository, and what is wrong with it; equal files have an equal ``source_digest`` (hex)."""

    path: str
    name: str
    description: str
    problems: tuple[str, ...]
    source_digest: str


@dataclass(frozen=True)
class Discovery:
    """The skills of one commit of one repository; ``ref`` is the branch or tag that it is on (see ``Snapshot``)."""

    repo_url: str
    commit_sha: str
    skills: tuple[DiscoveredSkill, ...]
    ref: str = ""


@dataclass(frozen=True)
class Accepted:
    """The answer for one skill: the outcome, its submission where there is one, and the reason where there is none."""

    skill: DiscoveredSkill
    outcome: Outcome
    submission: Submission | None = None
    reason: str = ""


def _source_digest(snapshot: Snapshot, path: str) -> str:
    digest = hashlib.sha256()
    for entry in sorted(below(snapshot.entries, path), key=lambda one: one.path):
        digest.update(f"{entry.mode} {entry.oid} {entry.path}\0".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _within(path: str, folder: str) -> bool:
    return not folder or path == folder or path.startswith(f"{folder}/")


def _showable(path: str) -> str:
    # A folder with an odd name is listed but never submitted, and its name may not even be valid UTF-8.
    return path if odd_name(path) is None else visible(path)


async def discover(env: WorkerEnv, url: str) -> Discovery:
    """Fetch the repository at ``url`` and list its skills, those with problems included.

    The address of a page (``/tree/main/skills/x``) lists the skills below that folder, and one that names a skill
    (``owner/repository@name``) that skill. Raises the errors of
    ``submissions.source``, and ``NoSkillFound``.
    """
    repository = repository_url(env, url)
    return await discover_repository(env, repository)


async def discover_repository(env: WorkerEnv, repository: RepositoryURL) -> Discovery:
    """List the skills of a repository whose address has been normalised."""
    async with scratch_folder() as folder:
        snapshot = await fetch(env, repository, folder)
        found: list[FoundSkill] = await find_skills(snapshot)
        place = snapshot.place
        wanted = [one for one in found if _within(one.path, place.path) and place.skill in ("", one.name)]
        skills = tuple(
            DiscoveredSkill(
                _showable(one.path), one.name, one.description, one.problems, _source_digest(snapshot, one.path)
            )
            for one in wanted
        )
        if not skills:
            where = f"the folder {visible(place.path)!r}" if place.path else "that repository"
            if place.skill:
                raise NoSkillFound(f"No skill in {where} is called {place.skill!r}. Nothing was submitted.")
            raise NoSkillFound(
                f"There is no skill in {where}: no folder holds a SKILL.md. Nothing was submitted. "
                "A skill is a folder with a SKILL.md that starts with its name and description."
            )
        return Discovery(repository.url, snapshot.commit_sha, skills, snapshot.ref)


def _salt(env: WorkerEnv) -> str:
    return f"{_TOKEN_SALT}.{env.name}"


def sign_discovery(env: WorkerEnv, discovery: Discovery) -> str:
    """Return a signed text that carries a discovery through a form: no second fetch is needed, and none can be
    forged."""
    skills = [
        [one.path, one.name, one.description[:300], list(one.problems), one.source_digest] for one in discovery.skills
    ]
    return signing.dumps(
        [discovery.repo_url, discovery.commit_sha, skills, discovery.ref], salt=_salt(env), compress=True
    )


def read_discovery(env: WorkerEnv, token: str) -> Discovery:
    """Return the discovery that ``sign_discovery`` signed; raise ``DiscoveryExpired`` for any other text."""
    try:
        repo_url, commit_sha, skills, ref = signing.loads(token, salt=_salt(env), max_age=TOKEN_HOURS * 3600)
    # ValueError: signed by an earlier release, which had no ref.
    except (signing.BadSignature, ValueError) as error:
        raise DiscoveryExpired(
            f"This list of skills is older than {TOKEN_HOURS} hours or was not made here. Nothing was submitted; "
            "enter the address again."
        ) from error
    return Discovery(
        repo_url, commit_sha, tuple(DiscoveredSkill(p, n, d, tuple(q), s) for p, n, d, q, s in skills), ref
    )


def select(discovery: Discovery, *, path: str = "", name: str = "") -> Discovery:
    """Return the discovery reduced to one skill, by ``path`` or else by ``name``; raise ``NoSkillFound`` where it has
    no such skill."""
    path = path.strip("/").removesuffix("/SKILL.md").removesuffix("SKILL.md").strip("/")
    if not path and not name:
        return discovery
    chosen = tuple(one for one in discovery.skills if (one.path == path if path else one.name == name))
    if not chosen:
        known = ", ".join(sorted(one.path or one.name for one in discovery.skills)[:20])
        raise NoSkillFound(f"That repository has no skill {path or name!r}. Nothing was submitted. It has: {known}.")
    return replace(discovery, skills=chosen)


async def accept(
    env: WorkerEnv, discovery: Discovery, paths: Sequence[str], *, source: str, actor: str, submitter: str = ""
) -> list[Accepted]:
    """Submit the skills at ``paths`` of a discovery, and return the answer for each.

    ``source`` names the way in (form, api, command, demo), ``actor`` who used it, ``submitter`` on whose behalf.
    Idempotent: a skill that is on its way, or published with the same content, is answered with that submission.
    """
    by_path = {one.path: one for one in discovery.skills}
    chosen = [by_path[path] for path in dict.fromkeys(paths) if path in by_path]
    return [
        await writers.run(accept_one, env, discovery, skill, source=source, actor=actor, submitter=submitter)
        for skill in chosen
    ]


async def submit(
    env: WorkerEnv, url: str, *, path: str = "", name: str = "", source: str, actor: str
) -> tuple[Discovery, list[Accepted]]:
    """Discover the repository at ``url`` and submit all of its skills, or the one at ``path`` or of that ``name``.

    ``source`` and ``actor`` are those of ``accept``. Raises what ``discover`` and ``accept`` raise.
    """
    discovery = select(await discover(env, url), path=path, name=name)
    return discovery, await accept(env, discovery, [one.path for one in discovery.skills], source=source, actor=actor)


def _published(env: WorkerEnv, identity: str, source_digest: str) -> Submission | None:
    rows = SubmissionEntry.objects.using(env.database).live().filter(namespace=env.name, identity=identity)
    for entry in rows.order_by("-submitted_at")[:1]:
        if entry.state != State.PUBLISHED:
            return None
        submission = read_submission(env, entry.submission_id)
        if submission.text("sourceDigest") == source_digest:
            return submission
    return None


def _revive(env: WorkerEnv, submission: Submission, actor: str) -> Submission:
    """Queue a live submission again if it has lost its message, which would otherwise block every new attempt."""
    if submission.state is State.RESCAN_REQUIRED:
        submission = transition(
            env, submission, State.RECEIVED, reason="submitted again", actor=actor, trigger="submit"
        )
        messages.send(env, submission.id, restart=True)
        return submission
    if submission.state in ACTIVE_STATES and messages.send(env, submission.id):
        return repeat(
            env, submission, reason="submitted again after it had lost its place", actor=actor, trigger="submit"
        )
    return submission


def accept_one(
    env: WorkerEnv, discovery: Discovery, skill: DiscoveredSkill, *, source: str, actor: str, submitter: str = ""
) -> Accepted:
    """Submit one skill of a discovery on the calling thread, and return the answer.

    A skill that is withheld, and the content of a withdrawn version, are not submitted. Any number of calls at once
    leave one submission and one message. ``source``, ``actor`` and ``submitter`` are those of ``accept``. Raises
    ``IntakeBusy`` after three lost races.
    """
    if skill.problems:
        return Accepted(skill, Outcome.INVALID, None, " ".join(skill.problems))
    if (block := is_blocked(env, discovery.repo_url)) is not None:
        return Accepted(skill, Outcome.BLOCKED, None, block.reason)
    identity = skill_identity(discovery.repo_url, skill.path)
    if reason := why_withdrawn(env, identity):
        return Accepted(skill, Outcome.WITHDRAWN, None, reason)
    fields: Mapping[str, Any] = {
        "repoUrl": discovery.repo_url,
        "skillName": skill.name,
        "skillPath": skill.path,
        "description": skill.description,
        "identity": identity,
        "commitSha": discovery.commit_sha,
        "sourceRef": discovery.ref,
        "sourceDigest": skill.source_digest,
        "source": source,
        "submittedBy": submitter or actor,
    }
    for _attempt in range(3):
        try:
            with transaction.atomic(using=env.database):
                if (live := live_submission(env, identity)) is not None:
                    return Accepted(skill, Outcome.DUPLICATE, _revive(env, read_submission(env, live), actor))
                if (published := _published(env, identity, skill.source_digest)) is not None:
                    if reason := why_withdrawn(env, identity, published.text("version")):
                        return Accepted(skill, Outcome.WITHDRAWN, None, f"{reason} {_SAME_CONTENT}")
                    return Accepted(skill, Outcome.ALREADY_VERIFIED, published)
                submission = create_submission(env, fields, actor=actor, trigger=source)
                messages.send(env, submission.id)
                return Accepted(skill, Outcome.CREATED, submission)
        except (IntegrityError, VersionConflict):
            # Another process submitted or moved the same skill at this moment: answer with its submission.
            continue
    raise IntakeBusy("Many people are submitting this skill at this moment. Nothing was submitted; please try again.")
