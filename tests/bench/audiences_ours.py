"""Pages of a registry with many private skills, in a process of its own: ``hide PERCENT``, or ``measure ROUNDS``.

Hiding gives members, or one of five teams, so many of the skills that ``pages_ours prepare`` has invented.
Measuring asks for every public address as a stranger, as a member and as one of a team, each round once in another
order, with a trivial page in between; an address counts by how many times the processor time of that it takes, so that
others on the machine do not count.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections import defaultdict
from dataclasses import replace
from statistics import median
from typing import Any, Final

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "vskill.settings")
    os.environ["VSKILL_HOSTS"] = "testserver"
    django.setup()

from django.contrib.auth import get_user_model
from django.db import transaction
from django.test import AsyncClient
from django.utils import timezone

from marketplace.models import SkillEntry
from marketplace.skills.count_check import mend_counts
from marketplace.skills.counts import fold
from tests.bench.page_addresses import Address, public_addresses
from tests.bench.pages_ours import FINE, TRIVIAL, sample_of, say_measured
from tests.bench.ready import say
from vskill.access_tokens.scopes import Scope
from vskill.access_tokens.tokens import make_token
from vskill.accounts.audiences import MEMBERS, team_audience
from vskill.accounts.teams import add_members
from vskill.environments import WorkerEnv, get_environment
from vskill.kv.codec import encode
from vskill.kv.threads import readers, writers
from vskill.models import RoleGrant, Team
from vskill.processes.garbage import keep_what_is_loaded
from vskill.worker_context import run_with_worker_env

TEAMS: Final = 5
_AT_ONCE: Final = 2_000
_BETWEEN: Final = 6


def hide(env: WorkerEnv, percent: int) -> dict[str, int]:
    """Show ``percent`` of the skills to members, or to a team each, past the history, and count the lists anew."""
    teams = [Team.objects.get_or_create(environment=env.name, name=f"team-{number}")[0] for number in range(TEAMS)]
    audiences = [MEMBERS, *(team_audience(team.pk) for team in teams)]
    hidden, rows = 0, SkillEntry.objects.filter(namespace=env.name, visibility="visible").exclude(slug="")
    keys = list(rows.order_by("pk").values_list("pk", flat=True))
    chance = random.Random(7)
    for start in range(0, len(keys), _AT_ONCE):
        with transaction.atomic():
            for row in rows.filter(pk__in=keys[start : start + _AT_ONCE]):
                if chance.randrange(100) >= percent:
                    continue
                value = replace(row.record, audience=chance.choice(audiences)).to_value()
                SkillEntry.objects.using(env.database).filter(pk=row.pk).write_row(
                    value=encode(value), **SkillEntry.project(value)
                )
                hidden += 1
    with transaction.atomic():
        mend_counts(env)
    while fold(env):
        pass
    return {"skills": len(keys), "hidden": hidden}


def _people(env: WorkerEnv) -> dict[str, dict[str, str]]:
    """Return the headers of a stranger, a member and one of a team."""
    people: dict[str, dict[str, str]] = {"stranger": {}}
    for name in ("member", "mate"):
        user, made = get_user_model()._default_manager.get_or_create(username=name)
        if made:
            given: dict[str, Any] = {"granted_by": "bench", "granted_at": timezone.now()}
            RoleGrant.objects.create(user=user, environment=env.name, role="viewer", **given)
        token = make_token(env, user, name="bench", scopes=[Scope.READ])[1]
        people[name] = {"Authorization": f"Bearer {token}"}
    if Team.objects.filter(environment=env.name, name="team-0").exists():
        add_members(env, "team-0", ["mate"])
    return people


async def measure(env: WorkerEnv, rounds: int) -> dict[str, Any]:
    """Return of each address how many times the processor time of the trivial page it takes, for each of the people."""
    sample = await readers.run(sample_of, env)
    clients = {name: AsyncClient(headers=headers) for name, headers in (await writers.run(_people, env)).items()}
    asked = [(name, one) for name in clients for one in public_addresses(sample)]
    times: defaultdict[tuple[str, Address], list[float]] = defaultdict(list)

    async def ask(name: str, address: Address) -> None:
        begun = time.process_time()
        answer: Any = await clients[name].get(address.path)
        if answer.streaming:
            async for _part in answer:
                pass
        times[name, address].append((time.process_time() - begun) * 1000)
        assert answer.status_code in FINE, (address.path, answer.status_code)

    for one in asked:
        await ask(*one)
    times.clear()
    keep_what_is_loaded()
    chance = random.Random(1)
    for _round in range(rounds):
        chance.shuffle(asked)
        for number, one in enumerate(asked):
            if number % _BETWEEN == 0:
                await ask("stranger", TRIVIAL)
            await ask(*one)
    trivial = median(times["stranger", TRIVIAL])
    pages = [
        {"who": name, "kind": one.kind, "path": one.shown, "of_medians": round(median(times[name, one]) / trivial, 1)}
        for name, one in asked
    ]
    pages.sort(key=lambda page: -float(str(page["of_medians"])))
    return {"trivial": trivial, "pages": pages}


def main() -> None:
    """Do what the command line says."""
    env = get_environment("default")
    if sys.argv[1] == "hide":
        say(run_with_worker_env(env, hide, env, int(sys.argv[2])))
        return
    say_measured(measure, env, int(sys.argv[2]))


if __name__ == "__main__":
    main()
