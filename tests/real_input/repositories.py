"""Submit whole public repositories and tell what came of every SKILL.md in them.

``python -m tests.real_input.repositories FOLDER [--only NAME ...] [--consumers N] [--keep FOLDER]``

FOLDER holds bare or ordinary clones, one folder each, or with a repository called ``repo`` in each. Nothing of them is
run. Each is submitted by ``manage.py submit``, then ``manage.py consume --drain`` works off what was accepted, in a
database of its own that is deleted afterwards (``--keep`` says where to leave it). The table is printed as Markdown and
written to build/repositories.md: files called SKILL.md in any case, skills listed, and how they ended, seconds and peak
memory of the listing, then every reason with its count.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from tests.git_factory import git

ROOT: Final = Path(__file__).resolve().parents[2]
REPORT: Final = ROOT / "build" / "repositories.md"
_SKILL_FILE: Final = re.compile(r"(?:.*/)?skill\.md", re.IGNORECASE)
_KIB: Final = 1024


@dataclass
class Repository:
    """One repository, how its listing went, and how each of its skills ended: state or outcome, and the reason."""

    name: str
    git_dir: Path
    skill_files: int = 0
    listed: int = 0
    seconds: float = 0.0
    megabytes: float = 0.0
    problem: str = ""
    ends: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def address(self) -> str:
        """Return the address that is submitted."""
        return f"file://{quote(str(self.git_dir))}"

    def count(self, *ends: str) -> int:
        """Return how many skills ended in one of these ways."""
        return sum(number for (end, _reason), number in self.ends.items() if end in ends)


@dataclass(frozen=True)
class Run:
    """What a command printed, how long it took in seconds, and the peak memory of its process tree in megabytes."""

    output: str
    errors: str
    seconds: float
    megabytes: float


def find_repositories(folder: Path, only: Sequence[str]) -> Iterator[Repository]:
    """Yield the repositories in ``folder``, those named by ``only`` where it names any."""
    for place in sorted(folder.iterdir()):
        for candidate in (place, place / "repo", place / ".git"):
            if (candidate / "HEAD").is_file() and (not only or place.name in only):
                names = git(candidate, "ls-tree", "-r", "-z", "--name-only", "HEAD").decode("utf-8", "replace")
                count = sum(_SKILL_FILE.fullmatch(name) is not None for name in names.split("\0"))
                yield Repository(place.name, candidate.resolve(), count)
                break


def manage(environment: dict[str, str], *arguments: str) -> Run:
    """Run a management command to its end and measure it."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "manage.py", *arguments], cwd=ROOT, env=environment, stdout=output, stderr=errors
        )
        _pid, _status, usage = os.wait4(process.pid, 0)
        process.returncode = _status
        seconds = time.perf_counter() - began
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
    return Run(texts[0], texts[1], seconds, usage.ru_maxrss / _KIB)


def submit(environment: dict[str, str], repository: Repository) -> None:
    """List a repository, which is what is measured, note what would not be accepted, and submit everything in it."""
    run = manage(environment, "submit", repository.address, "--dry-run", "--json")
    repository.seconds, repository.megabytes = run.seconds, run.megabytes
    if not run.output.strip():
        repository.problem = run.errors.strip().splitlines()[-1]
        return
    skills: list[dict[str, Any]] = json.loads(run.output)["skills"]
    repository.listed = len(skills)
    for skill in skills:
        if skill["wouldBe"] != "submitted":
            repository.ends[skill["wouldBe"], "; ".join(skill["problems"])] += 1
    manage(environment, "submit", repository.address)


def read_ends(environment: dict[str, str], repositories: Sequence[Repository]) -> None:
    """Read from the database how the submissions of each repository ended."""
    program = (
        "import json\n"
        "from submissions.models import SubmissionEntry\n"
        "for row in SubmissionEntry.objects.all().iterator():\n"
        "    value = json.loads(row.value)\n"
        "    decision = value.get('decision') or {}\n"
        "    reasons = '; '.join(decision.get('reasons', [])[:3])\n"
        "    told = reasons or decision.get('summary') or value.get('reason') or ''\n"
        "    print(json.dumps([row.repo_url, row.state, row.verdict, told, row.skill_path]))\n"
    )
    by_address = {repository.address: repository for repository in repositories}
    for line in manage(environment, "shell", "--no-imports", "-c", program).output.splitlines():
        address, state, verdict, told, _path = json.loads(line)
        end = state if state == "PUBLISHED" else f"{state} {verdict}".strip()
        reason = "" if state == "PUBLISHED" and verdict == "clear" else told
        by_address[address].ends[end, f"{verdict}" if state == "PUBLISHED" else reason] += 1


def table(repositories: Sequence[Repository]) -> str:
    """Return the table and the reasons as Markdown."""
    lines = [
        "| repository | SKILL.md | listed | published | held | refused | other | s | MB |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for one in repositories:
        published = one.count("PUBLISHED")
        held = sum(number for (end, _r), number in one.ends.items() if end.startswith("ON_HOLD"))
        refused = sum(
            number for (end, _r), number in one.ends.items() if end.startswith(("TIER1_FAILED", "REJECTED", "refused"))
        )
        other = sum(one.ends.values()) - published - held - refused
        lines.append(
            f"| {one.name.replace('+', '/')} | {one.skill_files} | {one.listed} | {published} | {held} | {refused} "
            f"| {other} | {one.seconds:.1f} | {one.megabytes:.0f} |"
        )
    lines.append("")
    for one in repositories:
        lines += ["", f"## {one.name.replace('+', '/')}", ""]
        if one.problem:
            lines.append(f"* not listed: {one.problem}")
        lines += [f"* {number} {end}: {reason or '-'}" for (end, reason), number in one.ends.most_common()]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Submit, work off and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--consumers", type=int, default=2)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    repositories = list(find_repositories(options.folder, options.only))
    with tempfile.TemporaryDirectory(prefix="vskill-repositories-") as scratch:
        data = options.keep or Path(scratch)
        data.mkdir(parents=True, exist_ok=True)
        environment = {
            **os.environ,
            "VSKILL_DATA_DIR": str(data),
            "DATABASE_URL": os.environ.get("DATABASE_URL", f"sqlite:///{data / 'vskill.sqlite3'}"),
            "VSKILL_SOURCE_ROOTS": str(options.folder.resolve()),
            "VSKILL_LOG_LEVEL": "WARNING",
        }
        manage(environment, "migrate", "--verbosity", "0")
        for repository in repositories:
            print(f"{repository.name}: {repository.skill_files} SKILL.md ...", file=sys.stderr, flush=True)
            submit(environment, repository)
        began = time.perf_counter()
        consumers = [
            subprocess.Popen([sys.executable, "manage.py", "consume", "--drain"], cwd=ROOT, env=environment)
            for _ in range(options.consumers)
        ]
        largest = 0.0
        for consumer in consumers:
            _pid, _status, usage = os.wait4(consumer.pid, 0)
            consumer.returncode = _status
            largest = max(largest, usage.ru_maxrss / _KIB)
        seconds = time.perf_counter() - began
        read_ends(environment, repositories)
    ended = sum(sum(one.ends.values()) for one in repositories)
    text = (
        f"{table(repositories)}\n{ended} skills ended; {options.consumers} consumers worked {seconds:.0f} s, "
        f"and the larger one needed {largest:.0f} MB.\n"
    )
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
