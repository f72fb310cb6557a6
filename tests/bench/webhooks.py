"""Measure how soon a running web process answers the webhook of a push, on one database: small ones and the largest.

Each is asked in turns with a trivial page, over the connections of three kinds of git hosts, signed and never twice
the same.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from statistics import quantiles
from typing import Any, Final

from tests.bench.rows import Row, at_most
from tests.bench.visitors import served
from tests.bench.workers import bench_database, our_module, run_to_end

OURS: Final = our_module("tests.bench.webhooks_ours")
SECRET: Final = f"whsec_{base64.b64encode(b'0123456789abcdef0123456789abcdef').decode()}"
# What GitHub lists of a push at most, and files of each that make the whole five megabytes.
COMMITS: Final = 2_000
_FILES: Final = 14
_REPOSITORIES: Final = 500
_ROUNDS: Final = 100
# Milliseconds, from the first byte sent to the answer read.
_ANSWERED: Final = 100.0
# In times of the trivial page of the same run: where the machine is busy with others, this says more.
_TIMES: Final = 4.0
_TRIVIAL: Final = "the trivial page"
_LIMITS: Final = {"VSKILL_LIMIT_READS": "off"}


@dataclass(frozen=True)
class Push:
    """A webhook as a git host sends it."""

    sender: str
    headers: Mapping[str, str]
    body: bytes


def followed(number: int) -> str:
    """Return the address of a followed repository."""
    return f"https://github.com/owner-{number % 97}/skills-{number}"


def commits(count: int, url: str) -> list[dict[str, Any]]:
    """Return commits as GitHub and Gitea list them."""
    person = {"name": "Ada Lovelace", "email": "ada@example.org", "username": "ada"}
    return [
        {
            "id": f"{number:040x}",
            "tree_id": f"{number + 1:040x}",
            "distinct": True,
            "message": f"Change skill {number}\n\nBecause of what was said about it, and Grüße aus 東京.",
            "timestamp": "2026-11-20T08:00:00+01:00",
            "url": f"{url}/commit/{number:040x}",
            "author": person,
            "committer": person,
            **{
                what: [f"skills/team-{number % 40}/skill-{number}/{what}/part-{part}.md" for part in range(_FILES)]
                for what in ("added", "removed", "modified")
            },
        }
        for number in range(count)
    ]


def github(number: int, listed: list[dict[str, Any]], url: str) -> Push:
    """Return the push of some commits to a repository; ``number`` tells it from all others."""
    repository = {"full_name": url.partition("github.com/")[2], "html_url": url, "clone_url": f"{url}.git"}
    # The repository at the end, as GitHub sends it after the list of commits or before it.
    told = {"ref": "refs/heads/main", "after": f"{number:040x}", "commits": listed, "repository": repository}
    body = json.dumps(told).encode()
    digest = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    return Push("github", {"X-GitHub-Event": "push", "X-Hub-Signature-256": f"sha256={digest}"}, body)


def gitlab(number: int, url: str) -> Push:
    """Return a push as GitLab sends it, which lists 20 commits at most."""
    project = {"git_http_url": f"{url}.git", "web_url": url}
    told = {"object_kind": "push", "after": f"{number:040x}", "commits": commits(20, url), "project": project}
    body, at = json.dumps(told).encode(), str(int(time.time()))
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    digest = base64.b64encode(hmac.new(key, f"id-{number}.{at}.".encode() + body, hashlib.sha256).digest()).decode()
    signed = {"webhook-id": f"id-{number}", "webhook-timestamp": at, "webhook-signature": f"v1,{digest}"}
    return Push("gitlab", {"X-Gitlab-Event": "Push Hook", **signed}, body)


def measure_webhooks(database: str) -> list[Row]:
    """Return how long an answer takes, in the 95th percentile, and in times of the trivial page of the same run."""
    area = f"webhooks, {database}"
    most = commits(COMMITS, followed(0))
    times: dict[str, list[float]] = defaultdict(list)
    spent: dict[str, float] = defaultdict(float)
    sizes: dict[str, int] = {}
    with bench_database(database) as environment:
        run_to_end([*OURS, str(_REPOSITORIES)], environment)
        Path(environment["VSKILL_DATA_DIR"]).mkdir(exist_ok=True)
        with served({**environment, **_LIMITS, "VSKILL_WEBHOOK_SECRET": SECRET}) as (port, web):
            connection = HTTPConnection("127.0.0.1", port, timeout=60)
            for number in range(_ROUNDS + 1):
                url = followed(number % _REPOSITORIES)
                pushes = {
                    "a push of one commit": github(number, most[:1], url),
                    f"a push of {COMMITS:,} commits": github(number + _ROUNDS + 1, most, url),
                    "a push of GitLab": gitlab(number, url),
                }
                for what, push in pushes.items():
                    sizes[what] = len(push.body)
                    trivial = _trivial(connection)
                    before = _processor(web.pid)
                    answered = _post(connection, push)
                    # The first of each loads what later ones find loaded.
                    if number:
                        times[_TRIVIAL].append(trivial)
                        times[what].append(answered)
                        spent[what] += _processor(web.pid) - before
    usual = _p95(times.pop(_TRIVIAL))
    rows = [Row(area, f"{_TRIVIAL}, p95", usual, "ms")]
    for what, found in times.items():
        rows.append(Row(area, f"{what}, size", sizes[what] / 1e6, "MB"))
        rows.append(at_most(area, f"{what}, p95", _p95(found), _ANSWERED, "ms"))
        rows.append(at_most(area, f"{what}, p95 against the trivial page", _p95(found) / usual, _TIMES))
        rows.append(Row(area, f"{what}, processor time of the web process", spent[what] / _ROUNDS, "ms"))
    return rows


def _processor(pid: int) -> float:
    """Return the milliseconds of processor time that a process has had, in the ticks of the system."""
    # Behind the name of the program, which may have spaces.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def _p95(milliseconds: list[float]) -> float:
    return quantiles(milliseconds, n=20, method="inclusive")[-1]


def _trivial(connection: HTTPConnection) -> float:
    begun = time.perf_counter()
    connection.request("GET", "/favicon.ico")
    connection.getresponse().read()
    return (time.perf_counter() - begun) * 1000


def _post(connection: HTTPConnection, push: Push) -> float:
    headers = {"Content-Type": "application/json", **push.headers}
    begun = time.perf_counter()
    connection.request("POST", f"/api/v1/webhooks/{push.sender}", push.body, headers)
    answer = connection.getresponse()
    said = answer.read()
    milliseconds = (time.perf_counter() - begun) * 1000
    assert answer.status == 202, (answer.status, said)
    return milliseconds
