"""Write many invented skills with their versions, submissions and history, past the queue.

Nothing is fetched or checked. They are there to see how pages, lists and search behave in a large registry. The files
of a skill are real and can be installed; many skills share them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from django.db import connections, transaction
from django.db.models import Model

from marketplace.models import (
    ALIAS_PREFIX,
    DownloadDay,
    HistoryEvent,
    SearchDocument,
    SkillEntry,
    SkillFacet,
    SkillVersion,
    VersionShingle,
)
from marketplace.records import Visibility
from marketplace.search.documents import position_of
from marketplace.search.spelling import add_words, words_of
from marketplace.skills.count_check import mend_counts
from marketplace.skills.counts import fold
from submissions.demo.bulk import insert
from submissions.demo.invented import HOST, PACKAGES, invent, package
from submissions.demo.packages import Kept, store_archives
from submissions.demo.rows import Made, make_rows
from submissions.models import SubmissionEntry, SubmissionTransition
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.kv.clock import database_now
from vskill.read_only_admin import prefix_range

MOST: Final = 1_000_000
_AT_ONCE: Final = 2_000


class RealSkillsThere(VskillError):
    """Raised where invented skills would come among real ones; nothing was written."""

    code = "real_skills_there"


@dataclass
class Written:
    """How many rows were written."""

    skills: int = 0
    versions: int = 0
    submissions: int = 0


def write_many(
    env: WorkerEnv, count: int, *, scan_key: str = "", among_real: bool = False, told: Callable[[int], None] = print
) -> Written:
    """Write ``count`` invented skills beside those that were invented before, and return how many rows that were.

    ``scan_key`` is kept with each version, so that no rescan chooses it. ``told`` is called with the number of skills
    so far. Each transaction holds some thousand skills, so a run that is stopped leaves whole ones. Raises
    ``RealSkillsThere`` where the registry holds a skill that was not invented, unless ``among_real``.
    """
    skills = (
        SkillEntry.objects.using(env.database).filter(namespace=env.name).exclude(prefix_range("key", ALIAS_PREFIX))
    )
    invented = skills.filter(prefix_range("repo_url", HOST))
    if not among_real and skills.exclude(pk__in=invented.values("pk")).exclude(repo_url__startswith="file:").exists():
        raise RealSkillsThere(
            f"{env.name!r} holds skills that were not invented, and invented ones would stand among them. Nothing was "
            "written: use an empty registry, or say --among-real."
        )
    newest = invented.order_by("-pk").values_list("slug", flat=True).first()
    first = int(newest.rpartition("-")[2]) + 1 if newest else 0
    packages = [Kept.of(package(number)) for number in range(PACKAGES)]
    store_archives(env, packages)
    written, now = Written(), database_now(env.database)
    if connections[env.database].vendor == "sqlite":
        with connections[env.database].cursor() as cursor:
            # Else the pages of large indexes are written and read again and again.
            cursor.execute("PRAGMA cache_size=-262144")

    batches = range(first, first + count, _AT_ONCE)
    publishers = max(20, (first + count) // 9)

    def make(start: int) -> list[Made]:
        numbers = range(start, min(start + _AT_ONCE, first + count))
        return [make_rows(env, invent(number, publishers, now), packages, scan_key, now) for number in numbers]

    # The rows of the next ones are made while the database writes those before.
    with ThreadPoolExecutor(1) as maker:
        pending = deque([maker.submit(make, batches[0])])
        for following in [*batches[1:], None]:
            made = pending.popleft().result()
            if following is not None:
                pending.append(maker.submit(make, following))
            with transaction.atomic(using=env.database):
                _write(env, made)
            written.skills += len(made)
            written.versions += sum(len(one.versions) for one in made)
            written.submissions += sum(len(one.submissions) for one in made)
            told(written.skills)
    with transaction.atomic(using=env.database):
        mend_counts(env)
    while fold(env):
        pass
    return written


def _write(env: WorkerEnv, made: Sequence[Made]) -> None:
    insert(env, SkillEntry, [one.entry for one in made])
    keys = [one.entry["key"] for one in made]
    numbers = dict(
        SkillEntry.objects.using(env.database).filter(namespace=env.name, key__in=keys).values_list("key", "pk")
    )
    skills = [(numbers[one.entry["key"]], one) for one in made]

    def of_skills(model: type[Model], rows: str) -> None:
        insert(env, model, [{**row, "skill_id": pk} for pk, one in skills for row in getattr(one, rows)])

    of_skills(SkillVersion, "versions")
    _write_shingles(env, skills)
    # Before the documents, which take from them what filters ask for.
    of_skills(SkillFacet, "facets")
    documents = [{"id": position_of(pk, one.entry["downloads"]), **one.document, "skill_id": pk} for pk, one in skills]
    insert(env, SearchDocument, documents)
    words = (words_of(one.document, is_public=one.entry["visibility"] == Visibility.VISIBLE) for one in made)
    add_words(env.database, env.name, set().union(*words))
    of_skills(HistoryEvent, "events")
    of_skills(DownloadDay, "days")
    insert(env, SubmissionEntry, [row for one in made for row in one.submissions])
    insert(env, SubmissionTransition, [row for one in made for row in one.steps])


def _write_shingles(env: WorkerEnv, skills: Sequence[tuple[int, Made]]) -> None:
    """Write the sketch of the latest version of each skill, by which similar ones are found."""
    latest = SkillVersion.objects.using(env.database).filter(skill_id__in=[pk for pk, _one in skills])
    numbers = {(skill, version): pk for skill, version, pk in latest.values_list("skill_id", "version", "pk")}
    shingles = [
        {"namespace": env.name, "value": value, "version_id": numbers[pk, one.entry["latest_version"]]}
        for pk, one in skills
        for value in one.sketch
    ]
    insert(env, VersionShingle, shingles)
