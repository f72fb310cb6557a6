"""How many of the shapes are held by the engines that are registered, judged as the server judges."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from submissions.evaluation.labels import Label, Sample
from submissions.evaluation.measure import TOGETHER, measure
from submissions.evaluation.report import STOPPED
from submissions.verification.engines import ENGINES, get_engines
from submissions.verification.engines.base import Engine
from submissions.verification.errors import EngineUnavailable
from submissions.verification.verdict import Verdict
from tests.submissions.verification.shapes import files_of, names

# How many are held today, of how many there are. Raise the hostile and lower the honest, never the other way round.
# The bar is 56 and 2 of the first two. The others were written to see what generalises: at first 11 and 2 of the fresh
# ones were held, and 10 and 0 of the later ones, which were written after the rules for the fresh.
HELD: Final = {
    "hostile": (56, 60),
    "honest": (0, 40),
    "fresh-hostile": (39, 40),
    "fresh-honest": (1, 20),
    "later-hostile": (17, 20),
    "later-honest": (0, 15),
}
# Hosts of the honest ones that a scanner should know, of well-known installers, and namespaces, which are no hosts.
KNOWN_HOSTS: Final = {"sh.rustup.rs", "astral.sh", "www.w3.org", "schemas.openxmlformats.org"}


def installed() -> list[Engine]:
    usable = []
    for engine in get_engines(ENGINES):
        try:
            assert engine.version
        except EngineUnavailable:
            continue
        usable.append(engine)
    return usable


async def verdicts(kind: str, folder: Path) -> dict[str, Verdict]:
    samples = []
    for name in names(kind):
        for path, content in files_of(kind, name).items():
            target = folder / name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        samples.append(Sample(name, Label.UNLABELLED, "shapes", "", ""))
    found = await measure(samples, folder, installed(), processes=2)
    return {one.sample.path: one.verdicts[TOGETHER] for one in found}


def told(found: dict[str, Verdict], *, wrong: bool) -> str:
    """Return how many are held, and those for which that is ``wrong``, or for which the opposite is."""
    held = sum(verdict in STOPPED for verdict in found.values())
    named = [f"{name} ({verdict})" for name, verdict in found.items() if (verdict in STOPPED) is wrong]
    return f"{held} of {len(found)} are held or refused. Wrongly judged: {', '.join(named)}"


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in HELD if kind.endswith("hostile")])
async def test_hostile_shapes_are_held(kind: str, tmp_path: Path) -> None:
    """Hold the level that is reached."""
    found = await verdicts(kind, tmp_path)
    held = sum(verdict in STOPPED for verdict in found.values())
    assert len(found) == HELD[kind][1]
    assert Verdict.FORMAT not in found.values()
    assert held >= HELD[kind][0], told(found, wrong=False)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in HELD if kind.endswith("honest")])
async def test_honest_look_alikes_are_not_held(kind: str, tmp_path: Path) -> None:
    """Hold the level that is reached."""
    found = await verdicts(kind, tmp_path)
    held = sum(verdict in STOPPED for verdict in found.values())
    assert len(found) == HELD[kind][1]
    assert Verdict.FORMAT not in found.values()
    assert held <= HELD[kind][0], told(found, wrong=True)


@pytest.mark.parametrize("kind", HELD)
def test_no_shape_can_reach_anybody(kind: str) -> None:
    for name in names(kind):
        text = b"\n".join(files_of(kind, name).values()).decode("utf-8", "replace")
        hosts = set(re.findall(r"[a-z]+://(?:[\w.-]+(?::\w+)?@)?([\w.-]+)", text))
        assert {host for host in hosts if not host.endswith((".invalid", "localhost"))} <= KNOWN_HOSTS, name
        assert not set(re.findall(r"/dev/tcp/([^/\s\[]+)/", text)) - {"c2.invalid", "203.0.113.7"}, name
