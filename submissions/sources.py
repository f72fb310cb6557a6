"""From the policy of an environment to a fetched snapshot in a folder that goes away."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from asgiref.sync import sync_to_async
from django.conf import settings

from submissions.source.git import FetchLimits, Snapshot, fetch_snapshot
from submissions.source.urls import RepositoryURL, SourcePolicy, normalise_repository_url
from vskill.environments import WorkerEnv


def source_policy(env: WorkerEnv) -> SourcePolicy:
    """Return where repositories of ``env`` may come from."""
    policy = env.policy
    return SourcePolicy(
        file_roots=tuple(Path(root) for root in policy.source_file_roots),
        private_hosts=frozenset(policy.source_private_hosts),
        rewrites=policy.source_rewrites,
        ca_file=Path(policy.source_ca_file) if policy.source_ca_file else None,
    )


def repository_url(env: WorkerEnv, text: str) -> RepositoryURL:
    """Return the repository that ``text`` names under the policy of ``env``; raise ``InvalidRepositoryURL``."""
    return normalise_repository_url(text, source_policy(env))


@asynccontextmanager
async def scratch_folder() -> AsyncIterator[Path]:
    """Give an empty folder below the data directory and remove it, with all that was put there, whatever happens."""
    parent = Path(settings.DATA_DIR) / "work"
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=parent))
    try:
        yield folder
    finally:
        await sync_to_async(shutil.rmtree, thread_sensitive=False)(folder, ignore_errors=True)


async def fetch(
    env: WorkerEnv, repository: RepositoryURL, directory: Path, *, commit_sha: str | None = None
) -> Snapshot:
    """Fetch the newest commit of ``repository``, or exactly ``commit_sha``, into ``directory`` under the limits of
    the settings."""
    return await fetch_snapshot(
        repository,
        directory=directory,
        policy=source_policy(env),
        limits=FetchLimits(seconds=settings.FETCH_SECONDS),
        commit_sha=commit_sha,
    )
