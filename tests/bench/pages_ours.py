"""Our part of the measurement of pages, in a process of its own.

It takes ``prepare SKILLS``, ``publish COUNT``, ``measure N``, ``public`` (publish the skills that the set of queries is
about), or then ``measure_set N``. Lists are measured before those skills are there: they are the newest, and have none
of the tags and capabilities by which lists are filtered.

Requests go through the whole application in this process, without a network. Each round asks for every address once,
in another order, and for the trivial pages again and again in between, so that a machine that is slow for a while is
slow for all of them.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import urlencode
from uuid import uuid4

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "vskill.settings")
    os.environ["VSKILL_HOSTS"] = "testserver"
    django.setup()

from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import AsyncClient, override_settings

from marketplace.models import SkillEntry, SkillVersion
from marketplace.models.derived import SkillCount
from marketplace.skill_sets.editing import Choice, Told, create_collection
from marketplace.skill_sets.reading import find_collection
from marketplace.skills.counts import COUNTED_FACETS, COUNTED_TOGETHER
from marketplace.skills.listing import list_skills
from marketplace.skills.publication import prepare_publication
from marketplace.skills.publish import publish_skill
from tests.bench.page_addresses import (
    API_ORDERS,
    Address,
    Sample,
    admin_addresses,
    deep_beside_first,
    public_addresses,
)
from tests.bench.pages import ADMIN, BARS, SEARCH_API, SEARCH_PAGE
from tests.bench.query_set import read_queries, read_skills
from tests.bench.ready import say
from tests.bench.search_ours import ours
from tests.marketplace.factories import make_publication
from vskill.environments import WorkerEnv, get_environment
from vskill.kv.threads import close_database_threads, readers
from vskill.processes.garbage import keep_what_is_loaded
from vskill.read_only_admin import MOST_COUNTED, ReadOnlyAdmin
from vskill.worker_context import run_with_worker_env

TRIVIAL: Final = Address("trivial", "/favicon.ico")
TRIVIAL_ADMIN: Final = Address("trivial admin", "/admin/password_change/")
# Requests between two for a trivial page.
_BETWEEN: Final = 6
# Rows of a page of the admin.
_OF_A_PAGE: Final = ReadOnlyAdmin.list_per_page
_IN_A_COLLECTION: Final = 20
# So many queries of each kind are asked again, so that each has a 95th percentile of its own.
_SLOWEST: Final = 5
_ROUNDS_OF_SLOWEST: Final = 100
_AGAIN: Final = 80
FINE: Final = frozenset({200, 301, 401, 404, 410})

Times = defaultdict[Address, list[float]]
"""The milliseconds of the requests for each address."""


def prepare(skills: int) -> None:
    """Make the tables and the skills."""
    call_command("migrate", verbosity=0)
    call_command("load_demo", "--skills", str(skills), "--among-real", "--json")


def publish(env: WorkerEnv, count: int) -> dict[str, float]:
    """Publish ``count`` skills beside those that are there, and return the median of the milliseconds of each."""
    times = []
    with TemporaryDirectory() as folder:
        for number in range(count):
            name = f"published-{uuid4().hex[:8]}"
            url, body = f"https://git.bench.invalid/owner-{number % 7}/skills", f"Step {number}. " * 200
            publication = make_publication(Path(folder) / name, name=name, repo_url=url, body=body)
            prepared = prepare_publication(publication)
            begun = time.perf_counter()
            publish_skill(env, prepared)
            times.append((time.perf_counter() - begun) * 1000)
    return {"publish": median(times)}


def sample_of(env: WorkerEnv) -> Sample:
    """Return what the registry holds: common and rare values of facets, and cursors near the end of each list."""
    counts = SkillCount.objects.filter(namespace=env.name, within="", count__gt=0).order_by("-count")
    every = {facet: counts.filter(kind=facet) for facet in COUNTED_FACETS}
    values = {facet: list(rows.values_list("value", flat=True)) for facet, rows in every.items()}
    filters, rare = ({facet: values[facet][place] for facet in COUNTED_TOGETHER} for place in (0, -1))
    skill = SkillEntry.objects.filter(namespace=env.name, publisher_handle=rare["publisher"]).order_by("pk")[0]
    version = SkillVersion.objects.filter(skill=skill).order_by("-ordinal")[0]
    return Sample(
        slug=skill.slug,
        version=version.version,
        collection=_collection(env),
        submission=version.submission_id,
        repository=skill.repo_url,
        small=rare["publisher"],
        large=filters["publisher"],
        filters=filters,
        rare=rare,
        alone={facet: values[facet][0] for facet in COUNTED_FACETS if facet not in COUNTED_TOGETHER and values[facet]},
        deep={sort: cursor for sort in API_ORDERS if (cursor := _deep(env, sort))},
    )


def _collection(env: WorkerEnv) -> str:
    """Make a collection of the newest skills unless there is one, and return its slug."""
    if find_collection(env, "measured") is None:
        newest = list_skills(env, limit=_IN_A_COLLECTION).skills
        told = Told("Measured", "A set of the newest skills.", tuple(Choice(one.slug) for one in newest))
        create_collection(env, "measured", told, actor="bench", reason="To be measured.")
    return "measured"


def _deep(env: WorkerEnv, sort: str) -> str:
    """Return a cursor after nine tenths of a list."""
    cursor, left = "", SkillEntry.objects.filter(namespace=env.name).count() * 9 // 10
    while left > 0:
        page = list_skills(env, sort=sort, limit=200, cursor=cursor or None)
        if page.next_cursor is None:
            return cursor
        cursor, left = page.next_cursor, left - 200
    return cursor


async def _ask(clients: Mapping[str, AsyncClient], visitor: AsyncClient, times: Times, address: Address) -> None:
    """Ask for an address as the client of its kind, else as a ``visitor``, and note how many milliseconds it took."""
    begun = time.perf_counter()
    answer: Any = await clients.get(address.kind, visitor).get(address.path)
    if answer.streaming:
        async for _part in answer:
            pass
    times[address].append((time.perf_counter() - begun) * 1000)
    assert answer.status_code in FINE, (address.path, answer.status_code)


async def _ask_in_rounds(
    ask: Callable[[Address], Awaitable[None]],
    chance: random.Random,
    beside: tuple[Address, ...],
    between: int,
    rounds: int,
    asked: list[Address],
) -> None:
    """Ask for all of ``asked`` in each round in another order, and after ``between`` of them for what is ``beside``."""
    for _round in range(rounds):
        chance.shuffle(asked)
        for number, address in enumerate(asked):
            if number % between == 0:
                for one in beside:
                    await ask(one)
            await ask(address)


async def measure(env: WorkerEnv, rounds: int) -> dict[str, Any]:
    """Return the 95th percentile and the median of each address, in times those of its trivial page.

    Each is asked ``rounds`` times, and what takes longer than its bar ``_AGAIN`` times more.
    """
    sample = await readers.run(sample_of, env)
    count = await SkillEntry.objects.filter(namespace=env.name).acount()
    user, _made = await get_user_model().objects.aget_or_create(username="bench", is_staff=True, is_superuser=True)
    visitor, operator = AsyncClient(), AsyncClient()
    await operator.aforce_login(user)
    addresses = [*public_addresses(sample), *admin_addresses(min(MOST_COUNTED, count) // _OF_A_PAGE)]
    times: Times = defaultdict(list)
    ask = partial(_ask, {ADMIN: operator, TRIVIAL_ADMIN.kind: operator}, visitor, times)
    for address in (TRIVIAL, TRIVIAL_ADMIN, *addresses):
        # What is only imported or compiled at the first request is no cost of a page.
        await ask(address)
    times.clear()
    # As the web process does at the end of its start.
    keep_what_is_loaded()
    run = partial(_ask_in_rounds, ask, random.Random(1), (TRIVIAL, TRIVIAL_ADMIN), _BETWEEN)
    await run(rounds, addresses)
    trivial = {True: _p95(times[TRIVIAL_ADMIN]), False: _p95(times[TRIVIAL])}
    # Of few requests one or two outliers decide: what seems to miss its bar is asked again.
    await run(_AGAIN, [one for one in addresses if _p95(times[one]) > BARS[one.kind] * trivial[one.kind == ADMIN]])
    pages: list[dict[str, Any]] = []
    for one in addresses:
        beside = times[TRIVIAL_ADMIN if one.kind == ADMIN else TRIVIAL]
        ratios = {"ratio": _p95(times[one]) / _p95(beside), "of_medians": median(times[one]) / median(beside)}
        pages.append({"kind": one.kind, "path": one.shown, **ratios})
    pages.sort(key=lambda page: -page["ratio"])
    deep = {first.path: median(times[one]) / median(times[first]) for first, one in deep_beside_first(sample)}
    return {
        "deep": deep,
        "trivial": _p95(times[TRIVIAL]),
        "trivial_admin": _p95(times[TRIVIAL_ADMIN]),
        "pages": pages,
        "public": [one.path for one in addresses if one.kind != ADMIN],
    }


async def measure_set(_env: WorkerEnv, rounds: int) -> dict[str, Any]:
    """Return the 95th percentile of all requests of the set of queries, and the highest of those of one query.

    Both are in times that of the trivial page. All queries are asked ``rounds`` times, and those that took longest
    ``_ROUNDS_OF_SLOWEST`` times more.
    """
    times: Times = defaultdict(list)
    ask = partial(_ask, {}, AsyncClient(), times)
    queries = [one.text for one in read_queries()]
    addresses = {
        SEARCH_PAGE: [Address(SEARCH_PAGE, f"/skills?{urlencode({'q': one})}") for one in queries],
        SEARCH_API: [Address(SEARCH_API, f"/api/v1/search?{urlencode({'q': one})}") for one in queries],
    }
    asked = [one for each in addresses.values() for one in each]
    for address in (TRIVIAL, *asked):
        await ask(address)
    keep_what_is_loaded()
    chance = random.Random(1)

    async def run(rounds: int, asked: list[Address], between: int) -> dict[str, float]:
        times.clear()
        await _ask_in_rounds(ask, chance, (TRIVIAL,), between, rounds, asked)
        beside = _p95(times[TRIVIAL])
        return {one.path: _p95(times[one]) / beside for one in asked}

    await run(rounds, asked, _BETWEEN)
    beside = _p95(times[TRIVIAL])
    every = {kind: _p95([time for one in each for time in times[one]]) / beside for kind, each in addresses.items()}
    slowest = {kind: sorted(each, key=lambda one: -median(times[one]))[:_SLOWEST] for kind, each in addresses.items()}
    again = await run(_ROUNDS_OF_SLOWEST, [one for each in slowest.values() for one in each], 1)
    found = {kind: max((again[one.path], one.path) for one in each) for kind, each in slowest.items()}
    return {kind: {"every": every[kind], "slowest": found[kind][0], "query": found[kind][1]} for kind in addresses}


def _p95(milliseconds: list[float]) -> float:
    return quantiles(milliseconds, n=20, method="inclusive")[-1]


def say_measured(measured: Callable[[WorkerEnv, int], Awaitable[dict[str, Any]]], env: WorkerEnv, rounds: int) -> None:
    """Measure in an environment without limits for clients, and say what was measured."""

    async def run() -> dict[str, Any]:
        return await run_with_worker_env(env, measured, env, rounds)

    limits = dict.fromkeys(settings.RATE_LIMITS, "")
    with override_settings(RATE_LIMITS=limits, VISITOR_SECONDS=60.0, VISITOR_WAIT=60.0):
        told = async_to_sync(run)()
    close_database_threads()
    say(told)


def main() -> None:
    """Do what the command line says."""
    if sys.argv[1] == "prepare":
        prepare(int(sys.argv[2]))
        return
    env = get_environment("default")
    if sys.argv[1] == "public":
        ours(read_skills())
        return
    if sys.argv[1] == "publish":
        say(run_with_worker_env(env, publish, env, int(sys.argv[2])))
        return
    say_measured({"measure": measure, "measure_set": measure_set}[sys.argv[1]], env, int(sys.argv[2]))


if __name__ == "__main__":
    main()
