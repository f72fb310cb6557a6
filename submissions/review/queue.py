"""The review queue: what waits for a reviewer, strongest first, narrowed by filters, and the one before and after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from django.db import connections
from django.db.models import Exists, Func, OuterRef, Q, QuerySet
from django.db.models.functions import Collate, Substr

from submissions.models import SUBMISSION_PREFIX, HeldSubmission, RuleSign, SubmissionEntry
from submissions.states import State
from vskill.environments import WorkerEnv
from vskill.read_only_admin import prefix_range

FILTERS: Final = ("verdict", "rule", "owner", "engine")
MOST_COUNTED: Final = 10_000
ORDER: Final = ("-review_rank", "submitted_at", "pk")
_REVIEWED: Final = (State.ON_HOLD, State.REJECTED)


def in_review(env: WorkerEnv) -> QuerySet[HeldSubmission]:
    """Return what waits for a reviewer, unordered."""
    rows: QuerySet[HeldSubmission] = HeldSubmission._default_manager.using(env.database)
    # The previous release moves rows without a look at their rank, so the state is asked for as well.
    return rows.filter(namespace=env.name, review_rank__isnull=False, state__in=_REVIEWED)


def condition(env: WorkerEnv, name: str, chosen: str) -> Q:
    """Return what the filter ``name`` demands of a row; an index answers it."""
    if name == "verdict":
        return Q(verdict=chosen)
    if name == "owner":
        return prefix_range("repo_url", f"https://{chosen.strip('/')}/")
    about: Func = Substr(OuterRef("key"), len(SUBMISSION_PREFIX) + 1)
    if connections[env.database].vendor == "postgresql":
        # Keys have the collation C, and an index serves only comparisons by its own.
        about = Collate(about, "default")
    signs = RuleSign.objects.using(env.database).filter(namespace=env.name, submission_id=about)
    return Q(Exists(signs.filter(rule_id=chosen) if name == "rule" else signs.filter(engine=chosen)))


def narrowed(env: WorkerEnv, chosen: Mapping[str, str]) -> QuerySet[HeldSubmission]:
    """Return what waits for a reviewer and fits the filters in ``chosen``; other names in it are left out."""
    rows = in_review(env)
    for name in FILTERS:
        if value := chosen.get(name, ""):
            rows = rows.filter(condition(env, name, value))
    return rows


def query_of(chosen: Mapping[str, str]) -> str:
    """Return the query string of the filters in ``chosen``, with its question mark; empty where there are none."""
    kept = {name: chosen[name] for name in FILTERS if chosen.get(name)}
    return f"?{urlencode(kept)}" if kept else ""


def count_left(env: WorkerEnv, chosen: Mapping[str, str]) -> int:
    """Return how many wait for a reviewer, counted to ``MOST_COUNTED``."""
    return narrowed(env, chosen)[:MOST_COUNTED].count()


def following(env: WorkerEnv, entry: SubmissionEntry, chosen: Mapping[str, str]) -> HeldSubmission | None:
    """Return the one after ``entry``, which need not be in the queue any more; the first where it was the last."""
    rows = narrowed(env, chosen).exclude(pk=entry.pk)
    if entry.review_rank is not None and entry.submitted_at is not None:
        same = rows.filter(review_rank=entry.review_rank).filter(
            Q(submitted_at__gt=entry.submitted_at) | Q(submitted_at=entry.submitted_at, pk__gt=entry.pk)
        )
        weaker = rows.filter(review_rank__lt=entry.review_rank)
        found = same.order_by("submitted_at", "pk").first() or weaker.order_by(*ORDER).first()
        if found is not None:
            return found
    return rows.order_by(*ORDER).first()


def previous(env: WorkerEnv, entry: SubmissionEntry, chosen: Mapping[str, str]) -> HeldSubmission | None:
    """Return the one before ``entry``, ``None`` where it is the first."""
    if entry.review_rank is None or entry.submitted_at is None:
        return None
    rows = narrowed(env, chosen).exclude(pk=entry.pk)
    same = rows.filter(review_rank=entry.review_rank).filter(
        Q(submitted_at__lt=entry.submitted_at) | Q(submitted_at=entry.submitted_at, pk__lt=entry.pk)
    )
    stronger = rows.filter(review_rank__gt=entry.review_rank)
    return (
        same.order_by("-submitted_at", "-pk").first()
        or stronger.order_by("review_rank", "-submitted_at", "-pk").first()
    )


def open_rules(env: WorkerEnv, most: int) -> list[str]:
    """Return the rules that hold something undecided, by name, at most ``most``."""
    return _open(env, "rule_id", most)


def open_engines(env: WorkerEnv, most: int) -> list[str]:
    """Return the engines that hold something undecided, by name, at most ``most``."""
    return _open(env, "engine", most)


def _open(env: WorkerEnv, column: str, most: int) -> list[str]:
    signs = RuleSign.objects.using(env.database).filter(namespace=env.name, outcome="")
    return list(signs.order_by(column).values_list(column, flat=True).distinct()[:most])
