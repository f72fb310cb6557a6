"""Scan what was dispatched, one after another, and post what was found."""

from __future__ import annotations

import asyncio
import json
import logging
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import urllib3

from submissions.external_scans.provider.archive import fetch_archive, unpack
from submissions.external_scans.provider.semgrep import ScannerFailed, run_semgrep
from submissions.external_scans.signing import signed_headers

logger = logging.getLogger(__name__)

# Seconds between attempts to post a result.
_WAITS: Final = (0.0, 2.0, 10.0)
_TIMEOUT: Final = urllib3.Timeout(connect=5.0, read=15.0)


@dataclass(frozen=True)
class Job:
    """One dispatch: the fields that the registry sent, and the secret that answers are signed with."""

    document: Mapping[str, str]
    secret: str

    def __repr__(self) -> str:
        return f"<Job {self.document.get('scanId')}>"


async def scan(job: Job, program: str) -> None:
    """Fetch the archive of a dispatch, scan it with the semgrep at ``program``, and post the result or the failure."""
    await _post(job, {"state": "RUNNING"})
    try:
        result = await _scan(job, program)
    except ScannerFailed as error:
        logger.warning("%s failed: %s", job.document["scanId"], error)
        await _post(job, {"state": "FAILED", "error": str(error)})
        return
    await _post(job, {"state": "COMPLETED", "engineVersion": result.version, "findings": list(result.findings)})


async def _scan(job: Job, program: str) -> Any:
    document = job.document
    content = await asyncio.to_thread(fetch_archive, document["archiveUrl"], document["archiveSha256"])
    with tempfile.TemporaryDirectory(prefix="vskill-external-") as scratch:
        await asyncio.to_thread(unpack, content, Path(scratch))
        return await run_semgrep(program, Path(scratch))


async def _post(job: Job, result: Mapping[str, Any]) -> None:
    document = job.document
    body = json.dumps({"scanId": document["scanId"], "environment": document["environment"], **result}).encode()
    status: int | None = None
    for wait in _WAITS:
        await asyncio.sleep(wait)
        status = await asyncio.to_thread(_send, document["resultUrl"], body, job.secret)
        if status is not None and status < 500 and status != 429:
            break
    if status != 200:
        logger.warning("the result of %s was answered with status %s", document["scanId"], status or "none")


def _send(url: str, body: bytes, secret: str) -> int | None:
    headers = signed_headers(secret, int(time.time()), body)
    try:
        with urllib3.PoolManager(timeout=_TIMEOUT, retries=False) as http:
            return http.request("POST", url, body=body, headers=headers, redirect=False).status
    except urllib3.exceptions.HTTPError:
        return None
