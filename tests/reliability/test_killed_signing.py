"""SIGKILL while versions are signed and the log grows, and two that append at once: each entry stands there once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from marketplace.provenance.keys import write_keys
from tests.marketplace.provenance import rfc9162
from tests.reliability.conftest import Record
from tests.reliability.installation import Installation, installation
from tests.reliability.test_killed_at_each_step import name_of, points

STEPS = ["leaf:1", "node:1", "unpend:1", "grow:1", "commit-grow:1", "key:1", "commit-key:1", "signature:1"]
POINTS = points([*STEPS, "commit-signature:1", "head:1"])
NAMES = [name_of(point) for point in POINTS]
SKILLS = 3


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Installation]:
    keys = tmp_path / "keys.pem"
    write_keys(keys)
    with installation(tmp_path, NAMES, VSKILL_SIGNING_KEY_FILE=str(keys)) as made:
        yield made


def test_what_is_published_is_signed_once_and_stands_in_the_log_once(one: Installation, record: Record) -> None:
    one.run("publish_several", names=NAMES, count=SKILLS)
    for point in POINTS:
        signing = one.start("command", words=["sign_published", "--environment", name_of(point)], kill_at=point)
        assert signing.ends() == -signal.SIGKILL, f"{point} was not reached:\n{signing.said()}"

    # More is published while two runs append what those left.
    started = [
        one.start("publish_several", names=NAMES, count=2 * SKILLS),
        *(one.start("command", words=["sign_published", "-v", "0"]) for _ in range(2)),
    ]
    for role in started:
        role.succeeds()
    one.run("command", words=["sign_published", "-v", "0"])

    for name in NAMES:
        of_name = f"WHERE namespace = '{name}'"
        leaves = one.rows(f"SELECT number, body, version_number FROM marketplace_logleaf {of_name} ORDER BY number")  # noqa: S608 - names of this test
        assert [number for number, _body, _version in leaves] == list(range(2 * SKILLS)), name
        assert len({version for _number, _body, version in leaves}) == 2 * SKILLS, name
        newest = f"SELECT root_hash FROM marketplace_treehead {of_name} ORDER BY size DESC LIMIT 1"  # noqa: S608 - as above
        assert one.rows(newest) == [(rfc9162.tree_hash([str(body).encode() for _, body, _ in leaves]).hex(),)]
        assert one.number(f"SELECT count(*) FROM marketplace_versionsignature {of_name}") == 2 * SKILLS, name  # noqa: S608 - as above
    for left in ("marketplace_logpending", "marketplace_skillversion WHERE signed_at IS NULL"):
        assert one.number(f"SELECT count(*) FROM {left}") == 0  # noqa: S608 - as above
    one.run("command", words=["verify_store"])
    record(
        "SIGKILL while versions are signed and the log grows, before and after each write and commit",
        f"{len(POINTS)} points, then two runs at once: each version signed once, each entry once, the roots are right",
    )
