"""Read every published skill from its own entry and not from an index: one after the other, or all at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from marketplace.errors import MalformedRecord
from marketplace.models import ALIAS_PREFIX, SKILL_PREFIX
from marketplace.records import SkillRecord
from marketplace.skills.store import skill_namespace
from marketplace.skills.visibility import is_visible
from vskill.environments import WorkerEnv
from vskill.kv.outcomes import Outcome, ReadCounts, Status

# Reads in flight at once. It bounds memory, however many skills there are.
READ_WINDOW: Final = 2000


class SkillStream:
    """Every visible skill of an environment, in the order of their keys, for ``async for``.

    Aliases are excluded by key before anything is read. All other entries are read ``READ_WINDOW`` at a time,
    concurrently and one by one: an entry that is malformed, unreadable or deleted meanwhile is skipped and counted.
    Memory follows the window and not the number of skills. What exists from the beginning to the end, under one slug,
    comes exactly once; what is published, renamed or removed meanwhile comes if its key is still ahead.
    """

    def __init__(self, env: WorkerEnv) -> None:
        self._namespace = skill_namespace(env)
        self._statuses: Counter[Status] = Counter()

    @property
    def counts(self) -> ReadCounts:
        """Return the outcomes of all reads so far; they cover every entry that is not an alias."""
        return ReadCounts.of(self._statuses)

    async def __aiter__(self) -> AsyncIterator[SkillRecord]:
        """Yield each skill."""
        waiting: list[str] = []
        async for key in self._namespace.list_all(SKILL_PREFIX):
            if key.startswith(ALIAS_PREFIX):
                continue
            waiting.append(key)
            if len(waiting) == READ_WINDOW:
                async for skill in self._read(waiting):
                    yield skill
                waiting = []
        async for skill in self._read(waiting):
            yield skill

    async def _read(self, keys: list[str]) -> AsyncIterator[SkillRecord]:
        for outcome in await asyncio.gather(*(self._namespace.get(key) for key in keys)):
            record = _record_of(outcome)
            self._statuses[Status.MALFORMED if outcome.found and record is None else outcome.status] += 1
            if record is not None and is_visible(record):
                yield record


def _record_of(outcome: Outcome) -> SkillRecord | None:
    try:
        return SkillRecord.from_value(outcome.value) if outcome.found else None
    except MalformedRecord:
        return None


def stream_published_skills(env: WorkerEnv) -> SkillStream:
    """Return every visible skill as a stream, which needs little memory; its ``counts`` say how the reads ended."""
    return SkillStream(env)


@dataclass(frozen=True)
class EnumeratedSkills:
    """The published skills, and the outcomes of all reads: ``counts`` covers every entry that is not an alias."""

    skills: tuple[SkillRecord, ...]
    counts: ReadCounts


async def enumerate_published_skills(env: WorkerEnv) -> EnumeratedSkills:
    """Return every visible skill at once, for a caller that needs all of them together; see ``SkillStream``."""
    stream = stream_published_skills(env)
    skills = tuple([skill async for skill in stream])
    return EnumeratedSkills(skills, stream.counts)
