"""Figures that the documents name are those of the code."""

from __future__ import annotations

import re

import pytest
from django.conf import settings

from submissions.source.git_process import FetchLimits
from submissions.source.lfs.remote_objects import LfsLimits
from submissions.verification.runner import EngineLimits
from submissions.verification.structure import PackageLimits
from tests.docs.production import read
from tests.end_to_end.processes import ROOT
from vskill.web.request_limits import MAX_BODY_BYTES, MAX_WEBHOOK_BYTES

KIB, MIB, GIB = 1024, 1024**2, 1024**3
FETCH, PACKAGE, ENGINE, LFS = FetchLimits(), PackageLimits(), EngineLimits(), LfsLimits()


def text(document: str) -> str:
    """Return a document with its lines joined, as it is read."""
    return re.sub(r"\s+", " ", (ROOT / document).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("of", "limit"),
    [
        ("a repository", f"{FETCH.pack_bytes // MIB} MiB to download, {FETCH.files:,} files, "),
        ("a repository", f", {FETCH.tree_bytes // MIB} MiB unpacked, {PACKAGE.skills:,} skills |"),
        ("a skill", f"| {PACKAGE.files} files, {PACKAGE.total_bytes // MIB} MiB, {LFS.objects} files in Git LFS |"),
        ("a code file", f"| {PACKAGE.code_file_bytes // KIB} KiB |"),
        (
            "a `SKILL.md`",
            f"| {PACKAGE.skill_md_bytes // KIB} KiB, of which {PACKAGE.frontmatter_bytes // KIB} KiB front",
        ),
        ("a fetch", f"| {FETCH.seconds:g} s (`VSKILL_FETCH_SECONDS`) |"),
        ("a scan by one engine", f"| {ENGINE.seconds:g} s, {ENGINE.cpu_seconds} s of processor time, "),
        ("a scan by one engine", f", {ENGINE.address_space / GIB:g} GiB of memory |"),
    ],
)
def test_limits_of_the_readme(of: str, limit: str) -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    [row] = [line for line in lines if line.startswith(f"| {of} |")]
    assert limit in row


def test_sizes_of_production() -> None:
    page = text("docs/production.md")
    assert f"A scan may use up to {ENGINE.address_space / GIB:g} GiB of memory" in page
    assert f"a fetch up to {FETCH.memory_bytes / GIB:g} GiB" in page
    assert f"about {FETCH.pack_bytes // MIB} MiB of scratch space" in page


def test_nginx_takes_bodies_as_large_as_the_registry_does() -> None:
    assert f"client_max_body_size {MAX_BODY_BYTES // MIB}m;" in read("nginx.conf")
    webhooks = read("nginx.conf").partition("location /api/v1/webhooks/ {")[2].partition("}")[0]
    assert f"client_max_body_size {MAX_WEBHOOK_BYTES // MIB}m;" in webhooks
    assert f"it is larger than {MAX_WEBHOOK_BYTES // MIB} MiB, or than {MAX_BODY_BYTES // MIB} MiB" in text(
        "docs/following.md"
    )


def test_nginx_waits_longer_than_a_submission_takes() -> None:
    [seconds] = re.findall(r"proxy_read_timeout (\d+)s;", read("nginx.conf"))
    # For a slot, and for the fetch.
    assert int(seconds) > 2 * settings.FETCH_SECONDS


def test_attempts_of_the_page_on_reliability() -> None:
    assert settings.QUEUE_BACKOFF == [10, 60, 300]
    assert settings.QUEUE_MAX_ERRORS == 4
    sentence = (
        "the first attempt, then one more after 10 s, after 60 s and after 5 min. If the fourth attempt fails too"
    )
    assert sentence in text("docs/reliability.md")
    assert f"It renews the lease every {settings.QUEUE_HEARTBEAT:g} s" in text("docs/reliability.md")
    assert f"expires after {settings.QUEUE_LEASE:g} s" in text("docs/reliability.md")
