"""Look content up among what is known to be bad, by index."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Final

from django.db.models import Count, Q

from marketplace.likeness.published import degree, is_similar
from marketplace.likeness.signature import Likeness, compare, unpack
from marketplace.models import KnownBad, KnownBadShingle
from vskill.environments import WorkerEnv

_MOST_CANDIDATES: Final = 50


def find_equal(env: WorkerEnv, content_hash: str, normal_digest: str = "") -> KnownBad | None:
    """Return the entry with this content, or with the same text under other names, or ``None``."""
    digests = {"content_hash": content_hash, "normal_digest": normal_digest}
    wanted = [Q((name, value)) for name, value in digests.items() if value]
    if not wanted:
        return None
    # Each of them is unique in an environment, so these are two rows at most.
    found = list(KnownBad.objects.using(env.database).filter(reduce(or_, wanted), namespace=env.name))
    return min(found, key=lambda entry: entry.content_hash != content_hash, default=None)


def is_any_known(env: WorkerEnv) -> bool:
    """Return whether an environment knows any bad content."""
    return KnownBad.objects.using(env.database).filter(namespace=env.name).exists()


def find_similar(env: WorkerEnv, sketch: tuple[int, ...]) -> tuple[KnownBad, Likeness] | None:
    """Return the entry whose text is most similar to that of a sketch, and how similar; ``None`` where none is."""
    if not sketch:
        return None
    rows = KnownBadShingle.objects.using(env.database).filter(namespace=env.name, value__in=sketch)
    counted = rows.values("entry_id").annotate(common=Count("pk")).order_by("-common", "entry_id")
    numbers = [row["entry_id"] for row in counted[:_MOST_CANDIDATES]]
    best: tuple[KnownBad, Likeness] | None = None
    for entry in KnownBad.objects.using(env.database).filter(pk__in=numbers).order_by("pk"):
        likeness = compare(unpack(entry.sketch), sketch)
        if is_similar(likeness) and (best is None or degree(likeness) > degree(best[1])):
            best = entry, likeness
    return best
