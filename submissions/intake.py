"""The one way in: the form, the API, the command and the admin submit through here.

A submission and its queue message are written in one transaction, so that "accepted" always means both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.db import IntegrityError, transaction

from marketplace.skills.blocklist import is_blocked
from marketplace.skills.places import note_place
from marketplace.skills.publishers import skill_identity
from marketplace.skills.reservations import why_reserved
from marketplace.skills.sources import note_copies
from marketplace.skills.store import name_of_identity, skills_of_identity
from marketplace.skills.withdrawal import why_withdrawn
from submissions import messages
from submissions.chosen_audiences import (
    AUDIENCE_FIELD,
    audience_of,
    audience_of_others,
    intended_audience,
    why_not_for,
)
from submissions.discovery import DiscoveredSkill, Discovery
from submissions.models import SubmissionEntry
from submissions.states import ACTIVE_STATES, State
from submissions.store.queries import live_submission, read_submission
from submissions.store.records import Submission
from submissions.store.transitions import create_submission, repeat, transition
from submissions.submitter import SUBMITTER_NUMBER, number_of
from vskill.accounts.audiences import PUBLIC
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.kv.errors import VersionConflict
from vskill.kv.threads import writers

INTERNAL = "Its author marks it as internal (metadata.internal), so it is submitted only by its name or path."
_SEVERAL_TEAMS = (
    "Skills of its repository were submitted for several teams, so nobody can say for whom this one is: submit it with "
    "an audience."
)
_SAME_CONTENT = "(The same content is not published again: change it, and submit it then.)"


class IntakeBusy(VskillError):
    """A skill changed again and again while it was being submitted; nothing was written."""

    code = "intake_busy"


class Outcome(StrEnum):
    """What became of one skill that was submitted; ``NOT_TOLD`` stands for any of them before whoever may not know."""

    CREATED = "created"
    DUPLICATE = "duplicate"
    ALREADY_VERIFIED = "already_verified"
    BLOCKED = "blocked"
    INVALID = "invalid"
    WITHDRAWN = "withdrawn"
    INTERNAL = "internal"
    RESERVED = "reserved"
    SHOWN_TO_OTHERS = "shown_to_others"
    NOT_TOLD = "not_told"


@dataclass(frozen=True)
class Accepted:
    """The answer for one skill: the outcome, its submission where there is one, and the reason where there is none."""

    skill: DiscoveredSkill
    outcome: Outcome
    submission: Submission | None = None
    reason: str = ""


async def accept(
    env: WorkerEnv,
    discovery: Discovery,
    paths: Sequence[str],
    *,
    source: str,
    actor: str,
    submitter: str = "",
    audience: str = PUBLIC,
) -> list[Accepted]:
    """Submit the skills at ``paths`` of a discovery, and return the answer for each.

    ``source`` names the way in (form, api, command, demo), ``actor`` who used it, ``submitter`` on whose behalf,
    and ``audience`` is to whom alone it is to be shown, empty for those whom policy says. Idempotent: a skill that is
    on its way, or published with the same content, is answered with that submission.
    """
    by_path = {one.path: one for one in discovery.skills}
    chosen = [by_path[path] for path in dict.fromkeys(paths) if path in by_path]
    return [
        await writers.run(
            accept_one, env, discovery, skill, source=source, actor=actor, submitter=submitter, audience=audience
        )
        for skill in chosen
    ]


def is_offered(discovery: Discovery, skill: DiscoveredSkill) -> bool:
    """Tell whether a skill is submitted with the others: it is not internal, or it was named."""
    return discovery.named or not skill.internal


async def accept_offered(
    env: WorkerEnv,
    discovery: Discovery,
    *,
    source: str,
    actor: str,
    submitter: str = "",
    audience: str = PUBLIC,
) -> list[Accepted]:
    """Submit every skill of a discovery but those that are internal and were not named, and return all answers.

    ``source``, ``actor``, ``submitter`` and ``audience`` are those of ``accept``.
    """
    left = [skill for skill in discovery.skills if not is_offered(discovery, skill)]
    paths = [skill.path for skill in discovery.skills if is_offered(discovery, skill)]
    accepted = await accept(env, discovery, paths, source=source, actor=actor, submitter=submitter, audience=audience)
    return [*accepted, *(Accepted(skill, Outcome.INTERNAL, None, INTERNAL) for skill in left)]


def _published(env: WorkerEnv, identity: str, source_digest: str) -> Submission | None:
    rows = SubmissionEntry.objects.using(env.database).live().filter(namespace=env.name, identity=identity)
    for entry in rows.order_by("-submitted_at")[:1]:
        if entry.state != State.PUBLISHED:
            return None
        submission = read_submission(env, entry.submission_id)
        if submission.text("sourceDigest") == source_digest:
            return submission
    return None


def _why_reserved(env: WorkerEnv, discovery: Discovery, skill: DiscoveredSkill, identity: str, former: str) -> str:
    if not (reason := why_reserved(env, discovery.repo_url, skill.name)):
        return ""
    # One that is published already keeps the name that it has; that is looked for only where it matters.
    had = name_of_identity(env, identity)
    had = had if had is not None else name_of_identity(env, former)
    return reason if had is None else why_reserved(env, discovery.repo_url, skill.name, had=had)


def _why_not_for(env: WorkerEnv, discovery: Discovery, audience: str, identity: str, former: str) -> str:
    """Return why a skill cannot be submitted for an audience: it is or will be shown to people outside of it."""
    skill = skills_of_identity(env, identity).first() or skills_of_identity(env, former).first()
    if skill is not None:
        return why_not_for(env, audience, skill.audience)
    if (live := live_submission(env, identity)) is None:
        return ""
    chosen = audience_of(read_submission(env, live).value)
    return why_not_for(env, audience, intended_audience(env, discovery.repo_url, chosen), pending=True)


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
    env: WorkerEnv,
    discovery: Discovery,
    skill: DiscoveredSkill,
    *,
    source: str,
    actor: str,
    submitter: str = "",
    audience: str | None = PUBLIC,
    priority: int = 0,
    more_fields: Mapping[str, Any] | None = None,
) -> Accepted:
    """Submit one skill of a discovery on the calling thread, and return the answer.

    A skill that is withheld, and the content of a withdrawn version, are not submitted, from whichever folder; nor is
    one whose name the policy, as it is now, reserves for another owner, or that is shown to others than ``audience``.
    Any number of calls at once leave one submission and one message. ``source``, ``actor``, ``submitter`` and
    ``audience`` are those of ``accept``, and ``None`` is the one that was chosen for the rest of its repository;
    ``priority`` is that of a new message, and ``more_fields`` go into the value of a new submission. Raises
    ``IntakeBusy`` after three lost races.
    """
    if skill.problems:
        return Accepted(skill, Outcome.INVALID, None, " ".join(skill.problems))
    if (block := is_blocked(env, discovery.repo_url)) is not None:
        return Accepted(skill, Outcome.BLOCKED, None, block.reason)
    identity = skill_identity(discovery.repo_url, skill.path)
    former = "" if skill.continues is None else skill_identity(discovery.repo_url, skill.continues)
    if reason := why_withdrawn(env, identity) or (why_withdrawn(env, former) if former else ""):
        return Accepted(skill, Outcome.WITHDRAWN, None, reason)
    if reason := _why_reserved(env, discovery, skill, identity, former):
        return Accepted(skill, Outcome.RESERVED, None, reason)
    if audience is None:
        audience = audience_of_others(env, discovery.repo_url, (identity, former))
        if audience is None:
            return Accepted(skill, Outcome.SHOWN_TO_OTHERS, None, _SEVERAL_TEAMS)
    if more_fields is None or SUBMITTER_NUMBER not in more_fields:
        more_fields = {**(more_fields or {}), SUBMITTER_NUMBER: number_of(submitter)}
    fields: Mapping[str, Any] = {
        "repoUrl": discovery.repo_url,
        "skillName": skill.name,
        "skillPath": skill.path,
        "description": skill.description,
        "identity": identity,
        "commitSha": discovery.commit_sha,
        "sourceRef": discovery.ref,
        "sourceDigest": skill.source_digest,
        "alsoAt": list(skill.also_at),
        "continues": skill.continues,
        "plannedSlug": skill.slug,
        "source": source,
        "submittedBy": submitter or actor,
        # Not the actor, which may be called as an account is.
        "submitterAccount": submitter,
        **({AUDIENCE_FIELD: audience} if audience else {}),
        **more_fields,
    }
    for _attempt in range(3):
        try:
            with transaction.atomic(using=env.database):
                if audience and (reason := _why_not_for(env, discovery, audience, identity, former)):
                    return Accepted(skill, Outcome.SHOWN_TO_OTHERS, None, reason)
                if (live := live_submission(env, identity)) is not None:
                    return Accepted(skill, Outcome.DUPLICATE, _revive(env, read_submission(env, live), actor))
                if (published := _published(env, identity, skill.source_digest)) is not None:
                    if reason := why_withdrawn(env, identity, published.text("version")):
                        return Accepted(skill, Outcome.WITHDRAWN, None, f"{reason} {_SAME_CONTENT}")
                    note_copies(env, identity, skill.also_at)
                    return Accepted(skill, Outcome.ALREADY_VERIFIED, published)
                submission = create_submission(env, fields, actor=actor, trigger=source)
                if former and (moving := skills_of_identity(env, former).first()) is not None:
                    note_place(env, moving, [identity])
                messages.send(env, submission.id, priority=priority)
                return Accepted(skill, Outcome.CREATED, submission)
        except (IntegrityError, VersionConflict):
            # Another process submitted or moved the same skill at this moment: answer with its submission.
            continue
    raise IntakeBusy("Many people are submitting this skill at this moment. Nothing was submitted; please try again.")
