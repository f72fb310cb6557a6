"""Fixtures that fetch a repository on this machine as a submission would."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from submissions.source.git import Snapshot, fetch_snapshot
from submissions.source.git_process import FetchLimits
from submissions.source.urls import SourcePolicy, normalise_repository_url

Fetch = Callable[..., Awaitable[Snapshot]]


@pytest.fixture
def policy(tmp_path: Path) -> SourcePolicy:
    """Allow repositories below the folder of the test."""
    return SourcePolicy(file_roots=(tmp_path,))


@pytest.fixture
def fetch(tmp_path: Path, policy: SourcePolicy) -> Fetch:
    """Return a function that fetches a local repository into a new folder."""

    async def fetch_repository(
        repository: Path, *, limits: FetchLimits | None = None, commit_sha: str | None = None
    ) -> Snapshot:
        directory = Path(tempfile.mkdtemp(prefix="fetched-", dir=tmp_path))
        url = normalise_repository_url(f"file://{repository}", policy)
        return await fetch_snapshot(url, directory=directory, policy=policy, limits=limits, commit_sha=commit_sha)

    return fetch_repository
