"""Compare the documents that skills are found by with the skills themselves, and mend them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from django.db import transaction
from django.db.models import OuterRef, Subquery

from marketplace.errors import MalformedRecord
from marketplace.models import SearchDocument, SkillEntry, SkillVersion
from marketplace.search.documents import FIELDS, document_of, index_skill, position_of
from marketplace.search.engines import engine_of
from marketplace.search.spelling import WordUse, unknown_words, words_of
from marketplace.skills.visibility import is_public
from vskill.environments import WorkerEnv

_AT_ONCE: Final = 500


def wrong_documents(env: WorkerEnv) -> list[int]:
    """Return the keys of the skills whose document is missing or is not what the skill says; all skills are read.

    So are those that have words whose spellings are not kept.
    """
    wrong: set[int] = set()
    having: dict[WordUse, int] = {}
    for row in _skills(env).iterator(_AT_ONCE):
        if _is_wrong(row):
            wrong.add(row.pk)
        elif (document := getattr(row, "search_document", None)) is not None:
            fields = {name: getattr(document, name) for name in FIELDS}
            having.update(dict.fromkeys(words_of(fields, is_public=is_public(row)), row.pk))
    wrong.update(having[use] for use in unknown_words(env.database, env.name, having))
    return sorted(wrong)


def mend_documents(env: WorkerEnv, wrong: list[int]) -> None:
    """Write the documents of the skills with these keys again, in the caller's transaction."""
    for part in _parts(wrong):
        rows = _skills(env).filter(pk__in=part).select_for_update(of=("self",))
        for row in rows.order_by("pk"):
            try:
                record = row.record
            except (MalformedRecord, ValueError):
                # verify_store tells of it as a value that cannot be read.
                continue
            index_skill(row, record, row.body or "", env.database)


def renew_positions(env: WorkerEnv) -> int:
    """Write documents that are missing, and those whose place no longer fits the downloads; return how many.

    So are those that an earlier release has written since, with what filters asked for before.
    """
    rows = SkillEntry.objects.using(env.database).filter(namespace=env.name).exclude(slug="")
    places = rows.values_list("pk", "downloads", "search_document__id")
    wrong = [pk for pk, downloads, place in places.iterator() if place != position_of(pk, downloads)]
    for part in _parts(wrong):
        with transaction.atomic(using=env.database):
            mend_documents(env, part)
    return len(wrong) + engine_of(env.database).mend_filters()


def _parts(keys: list[int]) -> Iterator[list[int]]:
    yield from (keys[start : start + _AT_ONCE] for start in range(0, len(keys), _AT_ONCE))


def _skills(env: WorkerEnv) -> Any:
    version = SkillVersion.objects.filter(skill=OuterRef("pk"), version=OuterRef("latest_version"))
    rows = SkillEntry.objects.using(env.database).filter(namespace=env.name).exclude(slug="")
    return rows.select_related("search_document").annotate(body=Subquery(version.values("skill_md")[:1]))


def _is_wrong(row: Any) -> bool:
    try:
        record = row.record
    except (MalformedRecord, ValueError):
        return False
    held: SearchDocument | None = getattr(row, "search_document", None)
    if held is None or held.namespace != row.namespace:
        return True
    return document_of(record, row.body or "") != {name: getattr(held, name) for name in FIELDS}
