"""The secret key that is made on the first start."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

from vskill.settings import kept_secret

AT_ONCE = 8


def test_everybody_who_starts_at_once_signs_with_the_same_key(tmp_path: Path) -> None:
    barrier = Barrier(AT_ONCE)

    def start(path: Path) -> str:
        barrier.wait()
        return kept_secret(path)

    with ThreadPoolExecutor(AT_ONCE) as threads:
        for attempt in range(50):
            path = tmp_path / str(attempt) / "secret_key"
            keys = set(threads.map(start, [path] * AT_ONCE))
            assert len(keys) == 1
            assert len(keys.pop()) > 40


def test_the_key_is_kept_for_its_owner_alone_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "secret_key"
    made = kept_secret(path)

    assert kept_secret(path) == made
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]
