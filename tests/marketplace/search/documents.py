"""Write documents for the search, with the words that a test says."""

from __future__ import annotations

from collections.abc import Iterable

from marketplace.models import SearchDocument, SkillEntry
from marketplace.search.documents import FIELDS, position_of
from tests.marketplace.factories import write_entries
from vskill.environments import WorkerEnv


def write_documents(env: WorkerEnv, texts: Iterable[str], downloads: int = 0, bodies: Iterable[str] = ()) -> None:
    """Write skills whose documents have the words of each text in their names, and of each of ``bodies`` elsewhere."""
    held = list(texts)
    bodies = list(bodies) or [""] * len(held)
    write_entries(env, len(held))
    empty = dict.fromkeys(FIELDS, "")
    SearchDocument.objects.bulk_create(
        SearchDocument(
            id=position_of(row.pk, downloads or row.pk % 40),
            namespace=env.name,
            skill=row,
            **{**empty, "name": text, "body": body},
        )
        for row, text, body in zip(SkillEntry.objects.order_by("pk"), held, bodies, strict=True)
    )
