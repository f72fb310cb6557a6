"""Plan what a discovery would publish: one skill for each content, and the slug that each has or will get."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from marketplace.skills.planned_slugs import PlannedSlug, plan_slugs
from marketplace.skills.reservations import why_reserved
from marketplace.skills.sources import KnownSkill, skills_of_repository
from submissions.discovered import DiscoveredSkill
from submissions.store.queries import read_submission
from submissions.store.records import SubmissionNotFound
from vskill.environments import WorkerEnv


def plan(
    env: WorkerEnv, repo_url: str, skills: Sequence[DiscoveredSkill], gone: Sequence[str]
) -> tuple[DiscoveredSkill, ...]:
    """Return the distinct skills among those found in a repository, with what is planned for each, on this thread.

    Of several folders with one content, a folder that is published already stands for all, or else the canonical one:
    below ``skills/``, then the shortest path. Where two skills share a name, the canonical one gets the plain slug.
    ``gone`` are the folders of published skills that the repository no longer has.
    """
    known = {one.path: one for one in skills_of_repository(env, repo_url)}
    leads = _leads(skills, known)
    new = sorted((one for one in leads if one.path not in known and not one.problems), key=lambda one: _order(one.path))
    renamed = _renamed(env, new, [known[path] for path in gone if path in known])
    reserved = _reserved(env, repo_url, leads, {**known, **renamed})
    unnamed = [one for one in new if one.path not in renamed and one.path not in reserved]
    slugs = plan_slugs(env, repo_url, [(one.path, one.name) for one in unnamed])
    planned = {skill.path: slug for skill, slug in zip(unnamed, slugs, strict=True)}
    return tuple(
        replace(skill, reserved=reserved[skill.path], also_at=also_at)
        if skill.path in reserved
        else _planned(skill, also_at, known, renamed, planned)
        for skill, also_at in leads.items()
    )


def _reserved(
    env: WorkerEnv, repo_url: str, skills: Iterable[DiscoveredSkill], present: Mapping[str, KnownSkill]
) -> dict[str, str]:
    """Return, by its path, why each skill may not have its name; ``present`` are those that are published already."""
    found: dict[str, str] = {}
    for skill in skills:
        had = present[skill.path].name if skill.path in present else None
        if not skill.problems and (reason := why_reserved(env, repo_url, skill.name, had=had)):
            found[skill.path] = reason
    return found


def _planned(
    skill: DiscoveredSkill,
    also_at: tuple[str, ...],
    known: Mapping[str, KnownSkill],
    renamed: Mapping[str, KnownSkill],
    planned: Mapping[str, PlannedSlug],
) -> DiscoveredSkill:
    """Return ``skill`` with what its path in ``known`` (published), ``renamed`` or ``planned`` (new) says."""
    if skill.problems:
        return skill
    notes: list[str] = []
    if also_at:
        notes.append(f"The same content is in {_some(also_at)}: it is one skill.")
    if (published := known.get(skill.path)) is not None:
        return replace(skill, slug=published.slug, also_at=also_at, notes=(*notes, *skill.notes))
    if (before := renamed.get(skill.path)) is not None:
        notes.append(
            f"The repository no longer has {before.path or 'the skill at its root'}, which this was before: "
            f"it keeps the name {before.slug}, its versions and its downloads."
        )
        return replace(skill, slug=before.slug, also_at=also_at, continues=before.path, notes=(*notes, *skill.notes))
    name = planned[skill.path]
    if name.holder:
        whose = "another skill of this publisher" if name.is_own else name.holder
        notes.append(f"The name {name.plain} belongs to {whose}, so it will be {name.slug}.")
    return replace(skill, slug=name.slug, held_by=name.holder, also_at=also_at, notes=(*notes, *skill.notes))


def _some(folders: Sequence[str]) -> str:
    shown = ", ".join(one or "the root" for one in folders[:3])
    return f"{shown} and {len(folders) - 3} more folders" if len(folders) > 3 else shown


def _order(path: str) -> tuple[bool, int, int, str]:
    return not path.startswith("skills/"), path.count("/") + bool(path), len(path), path


def _leads(
    skills: Iterable[DiscoveredSkill], known: Mapping[str, KnownSkill]
) -> dict[DiscoveredSkill, tuple[str, ...]]:
    """Return the skill that stands for each content, with the other folders that have it.

    Folders that were published as skills of their own before stay that.
    """
    groups: dict[object, list[DiscoveredSkill]] = {}
    for skill in skills:
        alone = skill.problems or not skill.source_digest or skill.path in known
        groups.setdefault(skill.path if alone else (skill.source_digest,), []).append(skill)
    published = {skill.source_digest: skill for skill in skills if skill.path in known and not skill.problems}
    leads: dict[DiscoveredSkill, tuple[str, ...]] = {}
    for key, group in groups.items():
        lead = min(group, key=lambda one: _order(one.path))
        copied = published.get(lead.source_digest) if isinstance(key, tuple) else None
        others = tuple(sorted(one.path for one in group if one is not lead or copied is not None))
        first = copied or lead
        leads[first] = tuple(sorted({*leads.get(first, ()), *others}))
    return dict(sorted(leads.items(), key=lambda pair: pair[0].path))


def _renamed(env: WorkerEnv, new: Sequence[DiscoveredSkill], gone: Sequence[KnownSkill]) -> dict[str, KnownSkill]:
    """Return, by its path, the skill that each new one was before: first those of equal content, then of equal name."""
    left = {one.path: one for one in gone}
    digests = {one.path: _digest(env, one) for one in gone}
    found: dict[str, KnownSkill] = {}
    for by_content in (True, False):
        for skill in new:
            if skill.path in found:
                continue
            alike = [
                one
                for one in left.values()
                if (digests[one.path] == skill.source_digest if by_content else one.name == skill.name)
            ]
            # By name alone it has to be clear which one is meant.
            before = alike[0] if len(alike) == 1 or (alike and by_content) else None
            if before is not None:
                found[skill.path] = left.pop(before.path)
    return found


def _digest(env: WorkerEnv, one: KnownSkill) -> str:
    try:
        return read_submission(env, one.record.submission_id).text("sourceDigest") or "unknown"
    except SubmissionNotFound:
        return "unknown"
