"""The names by which a publisher is asked for: its handle, and a short one for clients that take fewer characters.

The client ``skills`` takes as ``--owner`` only what a GitHub account could be called: letters, digits and hyphens, at
most 39 of them. A handle that is no such name has a short one besides, which is computed from it alone, so it never
changes and needs no table. Accounts of GitHub have no two hyphens in a row, and each short handle has.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from itertools import chain
from typing import Final

from marketplace.models import SkillEntry, SkillTransfer
from marketplace.models.derived import SkillCount, SkillCountChange
from marketplace.models.ownership import DONE, UNDONE
from marketplace.skills.counts import PUBLISHER
from marketplace.skills.publishers import publisher_of
from marketplace.skills.visibility import visible_skills
from vskill.environments import WorkerEnv
from vskill.kv.codec import is_storable, prefix_end

_TAKEN_BY_EVERY_CLIENT: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,38}")
# Dots between words without two hyphens in a row can be written as two hyphens, and read back.
_SPELLABLE: Final = re.compile(r"[a-z0-9]+([.-][a-z0-9]+)*")
_SPELT: Final = re.compile(r"[a-z0-9]+(--?[a-z0-9]+)*")
_LONGEST: Final = 39
# 80 bits in base 32; nobody finds a second handle with the same.
_DIGEST_LETTERS: Final = 16
# A short name, and transfers that followed each other.
_MOST_HOPS: Final = 6
_MOST_HOMES: Final = 50
_HASHED: Final = re.compile(r"(?P<beginning>[a-z0-9-]+)---[a-z2-7]{16}")


def short_handle(handle: str) -> str:
    """Return the name of a publisher that every client takes: the handle itself where it is one.

    Otherwise its dots are written as two hyphens (``acme--gitlab--com``), or, where that cannot be read back or is too
    long, it is the beginning of the handle, three hyphens, and a hash. No two handles have the same.
    """
    if not handle or _TAKEN_BY_EVERY_CLIENT.fullmatch(handle):
        return handle
    if _SPELLABLE.fullmatch(handle) and len(spelt := handle.replace(".", "--")) <= _LONGEST:
        return spelt
    digest = base64.b32encode(hashlib.sha256(handle.encode()).digest()).decode().lower()[:_DIGEST_LETTERS]
    return f"{_beginning(handle) or '0'}---{digest}"


def present_handle(env: WorkerEnv, written: str) -> str:
    """Return the handle that somebody wrote, as it is, with ``@`` or in capitals, or as a short one.

    The name of a publisher that has handed over all that it had leads to who received it. What names nobody is returned
    in small letters. Call it on a database thread.
    """
    name = written.strip().removeprefix("@").lower()
    if not name:
        # Not the empty text, which as a filter means everybody.
        return written
    if not is_storable(name):
        return name
    # Whose own handle it is comes first, though no account of GitHub can have a short name of another today.
    for _hop in range(_MOST_HOPS):
        if _is_handle(env, name):
            return name
        following = _spelt_out(env, name) or _received_by(env, name)
        if not following or following == name:
            return name
        name = following
    return name


def is_named(env: WorkerEnv, skill: SkillEntry, written: str) -> bool:
    """Return whether ``written``, with ``@`` or without, names a skill's publisher: a handle or an owner.

    Former publishers count as well, because clients know the skill that they installed by their names. An owner alone,
    who may be of any host, does not where it is the handle of somebody else.
    """
    name = written.strip().removeprefix("@").lower()
    homes = chain([(skill.publisher_handle, skill.repo_url)], _former_homes(env, skill))
    seen = set()
    for handle, url in homes:
        if name in (handle, short_handle(handle)):
            return True
        seen.add(publisher_of(url).owner)
    return name in seen and not (_is_handle(env, name) or _received_by(env, name))


def is_of_repository(env: WorkerEnv, skill: SkillEntry, written: str) -> bool:
    """Return whether a skill is, or was before a transfer, of a repository of this name."""
    homes = chain([(skill.publisher_handle, skill.repo_url)], _former_homes(env, skill))
    return any(written.lower() == publisher_of(url).repository for _handle, url in homes)


def _former_homes(env: WorkerEnv, skill: SkillEntry) -> Iterator[tuple[str, str]]:
    """Yield the handle and the address of each home that a skill had; what is right already costs no query."""
    rows = SkillTransfer.objects.using(env.database).filter(skill=skill, state__in=(DONE, UNDONE))
    for row in rows.order_by("-pk")[:_MOST_HOMES]:
        yield row.from_handle, row.from_repo_url
        yield row.to_handle, row.to_repo_url


def _spelt_out(env: WorkerEnv, name: str) -> str:
    """Return the handle that a short one stands for, or '' where it is none."""
    if "--" not in name or not _TAKEN_BY_EVERY_CLIENT.fullmatch(name):
        return ""
    if _SPELT.fullmatch(name):
        return name.replace("--", ".")
    if (hashed := _HASHED.fullmatch(name)) is None:
        return ""
    return next((one for one in _handles_from(env, hashed["beginning"]) if short_handle(one) == name), "")


def _received_by(env: WorkerEnv, name: str) -> str:
    """Return the handle of who received what a publisher had, whose handle nothing is listed under any more.

    Of what whoever asks may not see nothing is told.
    """
    rows = SkillTransfer.objects.using(env.database).filter(namespace=env.name, from_handle=name, state=DONE)
    latest = list(rows.order_by("-pk").values_list("to_handle", "skill_id")[:_MOST_HOMES])
    skills = SkillEntry.objects.using(env.database).filter(pk__in=[skill for _handle, skill in latest])
    shown = set(visible_skills(skills).values_list("pk", flat=True)) if latest else set()
    return next((handle for handle, skill in latest if skill in shown), "")


def _beginning(handle: str) -> str:
    found = re.match(r"[a-z0-9]+(-[a-z0-9]+)*", handle)
    return found[0][: _LONGEST - 3 - _DIGEST_LETTERS].rstrip("-") if found else ""


def _is_handle(env: WorkerEnv, name: str) -> bool:
    rows = SkillEntry.objects.using(env.database).filter(namespace=env.name, publisher_handle=name)
    return visible_skills(rows).exists()


def _handles_from(env: WorkerEnv, beginning: str) -> set[str]:
    """Return the handles with a beginning; the counts have a row for each publisher, however many skills it has."""
    found: set[str] = set()
    for start in ("0", "-", "_") if beginning == "0" else (beginning,):
        for model in (SkillCount, SkillCountChange):
            rows = model.objects.using(env.database).filter(namespace=env.name, within="", kind=PUBLISHER)
            found.update(rows.filter(value__gte=start, value__lt=prefix_end(start)).values_list("value", flat=True))
    return found
