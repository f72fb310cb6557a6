"""A skill is closed, or somebody leaves its team, while others ask, sign and publish: real threads and connections."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from django.contrib.auth import get_user_model
from django.db import connections
from django.test import Client, override_settings

from marketplace.errors import PublicationBlocked
from marketplace.models import HistoryEvent, LogLeaf, LogPending, SkillEntry, SkillVersion, VersionSignature
from marketplace.provenance.signing import sign_published
from marketplace.skills.audience import show_to
from marketplace.skills.count_check import wrong_counts
from marketplace.skills.publish import publish_skill
from tests.marketplace.factories import make_publication, publish_example
from tests.marketplace.provenance.signing_registry import signing_with
from tests.marketplace.skills.test_publish_races import at_once
from tests.vskill.sign_in.test_access import signed_in
from vskill.access_tokens.scopes import Scope
from vskill.access_tokens.tokens import make_token
from vskill.accounts.access import with_pass
from vskill.accounts.audiences import MEMBERS, PUBLIC, team_audience
from vskill.environments import WorkerEnv, get_environment
from vskill.models import Team

pytestmark = pytest.mark.django_db(transaction=True)

SLUG: Final = "open-skill"
ARCHIVE: Final = f"/skills/{SLUG}/download/0.0.1.zip"
TURNS: Final = 6
ASKED_EACH_TURN: Final = 8


@dataclass
class Watch:
    """What may be seen now, as it was last committed, and what was answered against that.

    ``turn`` is odd while a change is being made: then both answers are right.
    """

    turn: int = 0
    is_shown: bool = True
    wrong: list[tuple[str, int, bool]] = field(default_factory=list)
    asked: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)

    def change(self, is_shown: bool, commit: Callable[[], Any]) -> None:
        """Make a change and wait until enough was asked after it was committed."""
        self.turn += 1
        commit()
        with self.changed:
            self.is_shown, self.asked = is_shown, 0
            self.turn += 1
            assert self.changed.wait_for(lambda: self.asked >= ASKED_EACH_TURN, timeout=60)

    def ask(self, client: Client, path: str) -> None:
        """Ask once; an answer counts where the same was committed before the question and after the answer."""
        turn, is_shown = self.turn, self.is_shown
        status = client.get(path).status_code
        with self.changed:
            if turn % 2 or turn != self.turn:
                return
            if (status == 200) != is_shown:
                self.wrong.append((path, status, is_shown))
            self.asked += 1
            self.changed.notify_all()


@contextmanager
def asking(watch: Watch, client: Client, paths: list[str]) -> Iterator[None]:
    """Ask for each path again and again, each in a thread of its own, while the body runs."""
    over = threading.Event()

    def run(path: str) -> None:
        own = Client(raise_request_exception=False)
        own.defaults, own.cookies = client.defaults, client.cookies
        try:
            while not over.is_set():
                watch.ask(own, path)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(paths)) as pool:
        started = [pool.submit(run, path) for path in paths]
        try:
            yield
        finally:
            over.set()
        for one in started:
            one.result()


@pytest.mark.parametrize("policy", ["open", "closed"])
def test_no_stranger_is_answered_after_a_skill_was_closed_whatever_link_it_has(env: WorkerEnv, policy: str) -> None:
    publish_example(env, name=SLUG)
    with override_settings(VSKILL_ENVIRONMENTS={"default": {"hosts": ["*"], "policy": {"access": policy}}}):
        env = get_environment("default")
        # In a closed registry the only thing that opens anything to a program is the pass that it was given before.
        links = [with_pass(env, ARCHIVE)] * 2
        more = [f"/skills/{SLUG}", f"/api/v1/skills/{SLUG}", f"/git/acme/{SLUG}.git/info/refs?service=git-upload-pack"]
        watch = Watch()
        with asking(watch, Client(), links if policy == "closed" else [*links, *more]):
            for turn in range(TURNS):
                audience = PUBLIC if turn % 2 else MEMBERS
                show = partial(show_to, env, SLUG, audience, actor="operator", reason="turn")
                watch.change(audience == PUBLIC, show)
    assert watch.wrong == []
    assert wrong_counts(env) == []


@pytest.mark.parametrize("by_token", [False, True])
def test_who_was_taken_out_of_a_team_is_answered_nothing_more(env: WorkerEnv, by_token: bool) -> None:
    client = signed_in("viewer", name="mate")
    mate = get_user_model()._default_manager.get(username="mate")
    team = Team.objects.create(environment=env.name, name="hr")
    team.members.add(mate)
    publish_example(env, name=SLUG, audience=team_audience(team.pk))
    if by_token:
        token = make_token(env, mate, name="x", scopes=[Scope.READ])[1]
        client = Client(headers={"Authorization": f"Bearer {token}"})
    watch = Watch()
    with asking(watch, client, [ARCHIVE, f"/skills/{SLUG}", f"/api/v1/skills/{SLUG}/install"]):
        for turn in range(TURNS):
            change = team.members.add if turn % 2 else team.members.remove
            watch.change(bool(turn % 2), partial(change, mate))
    assert watch.wrong == []


def test_runs_that_sign_tell_the_log_of_no_skill_after_it_was_closed(tmp_path: Path) -> None:
    slugs, others = [f"skill-{number}" for number in range(8)], [f"late-{number}" for number in range(4)]
    with signing_with(tmp_path / "keys") as env:
        for slug in slugs:
            publish_example(env, name=slug, skill_path=slug)
        # As an earlier release left them: the run that signs them tells of them first, where they are public.
        LogPending.objects.all().delete()

        def close() -> None:
            for slug in slugs:
                show_to(env, slug, MEMBERS, actor="operator", reason="it became ours")

        def publish() -> None:
            for slug in others:
                publish_example(env, name=slug, skill_path=slug, audience=MEMBERS)

        at_once([close, lambda: [sign_published(env) for _again in slugs], publish, lambda: sign_published(env)])
        assert sign_published(env).left == 0
    told: dict[str, list[str]] = {slug: [] for slug in (*slugs, *others)}
    for body in LogLeaf.objects.order_by("number").values_list("body", flat=True):
        entry = json.loads(body)
        told[entry["skill"]].append(entry["type"])
    # What was closed before it was told of is told of no more, and what was told of is told to be closed.
    assert {tuple(told[slug]) for slug in slugs} <= {("closed",), ("published", "closed")}
    assert {tuple(told[slug]) for slug in others} == {()}
    assert VersionSignature.objects.count() == len(told)
    assert wrong_counts(env) == []


def test_what_was_submitted_for_a_team_is_never_published_after_its_skill_was_opened(
    env: WorkerEnv, tmp_path: Path
) -> None:
    slugs = [f"skill-{number}" for number in range(6)]
    for slug in slugs:
        publish_example(env, name=slug, skill_path=slug, audience=MEMBERS)
    next_versions = [
        make_publication(
            tmp_path / slug, name=slug, skill_path=slug, body="More.", audience=MEMBERS, for_nobody_but=MEMBERS
        )
        for slug in slugs
    ]

    def opening(slug: str) -> Callable[[], bool]:
        return lambda: bool(show_to(env, slug, PUBLIC, actor="operator", reason="everybody may have it"))

    def publishing(publication: Any) -> Callable[[], bool]:
        def publish() -> bool:
            try:
                return publish_skill(env, publication).created
            except PublicationBlocked:
                return False

        return publish

    for slug, publication in zip(slugs, next_versions, strict=True):
        _opened, published = at_once([opening(slug), publishing(publication)])
        row = SkillEntry.objects.get(slug=slug)
        assert (row.audience, SkillVersion.objects.filter(skill=row).count()) == (PUBLIC, 2 if published else 1)
        order = list(HistoryEvent.objects.filter(skill=row).order_by("pk").values_list("action", flat=True))
        assert order == ["published", *(["published"] if published else []), "shown to everybody"]
    assert wrong_counts(env) == []
