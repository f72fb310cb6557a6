"""Build the demo: a bare git repository of the skills beside this module, with a reproducible commit."""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from submissions.sandbox.child_processes import ChildLimits
from submissions.source.fetching import scratch_folder
from submissions.source.git_process import GitSandbox, open_sandbox
from vskill.errors import VskillError

FOLDER: Final = Path(__file__).parent
# The content of the demo in this folder; the rest is code.
CONTENT: Final = ("README.md", "skills")
# Added here, because a checkout of this project should hold no link that leads out of its folder.
LINKS: Final = {"skills/shared-glossary/glossary.md": "../../../../etc/glossary.md"}
# A line and how often it stands in a file. Added here, because a checkout need not hold eleven megabytes of the same.
REPEATED: Final = {"skills/offline-dictionary/words.tsv": (b"hello\tWhat people say when they meet.\n", 304_000)}
_AUTHOR: Final = "vskill demo <demo@vskill.invalid> 1704067200 +0000"
_MESSAGE: Final = "Add the demo skills"
_BRANCH: Final = "refs/heads/main"
_LIMITS: Final = ChildLimits(seconds=30, output_bytes=64 * 1024)


class DemoNotBuilt(VskillError):
    """Raised when the demo repository could not be built; an existing one is unchanged."""

    code = "demo_not_built"


@dataclass(frozen=True)
class DemoRepository:
    """A repository on this machine and its only commit."""

    path: Path
    commit_sha: str

    @property
    def url(self) -> str:
        """Return the file:// address to submit."""
        return self.path.as_uri()


def demo_path(data_dir: Path) -> Path:
    """Return the path of the demo in a data directory, below a folder that the default settings accept."""
    return data_dir / "demo" / "skills.git"


async def build_demo_repository(path: Path) -> DemoRepository:
    """Build the repository at ``path`` unless it already has the current commit; raises DemoNotBuilt."""
    async with scratch_folder() as folder:
        sandbox = await open_sandbox(folder, configuration=[("core.hooksPath", "/dev/null"), ("gc.auto", "0")])
        await _git(sandbox, "symbolic-ref", "HEAD", _BRANCH)
        await _git(sandbox, "fast-import", "--quiet", stdin=_stream(_all_files(), LINKS))
        commit_sha = await _git(sandbox, "rev-parse", "--verify", f"{_BRANCH}^{{commit}}")
        if _is_built(path, commit_sha):
            return DemoRepository(path, commit_sha)
        _install(sandbox.git_dir, path, commit_sha)
    return DemoRepository(path, commit_sha)


def _all_files() -> Iterator[tuple[str, bytes]]:
    yield from _files(FOLDER, CONTENT)
    for name, (line, count) in REPEATED.items():
        yield name, line * count


def _files(folder: Path, content: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the path and bytes of every file, in the same order on every machine."""
    found = [path for name in content for path in (folder / name, *(folder / name).rglob("*"))]
    paths = {unicodedata.normalize("NFC", path.relative_to(folder).as_posix()): path for path in found}
    for name, path in sorted(paths.items()):
        # Skips what file managers and the interpreter leave behind.
        if path.is_file() and not any(part.startswith((".", "__")) for part in path.relative_to(folder).parts):
            yield name, path.read_bytes()


def _stream(files: Iterator[tuple[str, bytes]], links: Mapping[str, str]) -> bytes:
    """Return one commit in the input format of ``git fast-import``."""
    parts = [f"commit {_BRANCH}\nauthor {_AUTHOR}\ncommitter {_AUTHOR}\n".encode(), _data(_MESSAGE.encode())]
    parts += [b"M 100644 inline " + name.encode() + b"\n" + _data(content) for name, content in files]
    parts += [b"M 120000 inline " + name.encode() + b"\n" + _data(target.encode()) for name, target in links.items()]
    return b"".join(parts)


def _data(content: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(content), content)


async def _git(sandbox: GitSandbox, *arguments: str, stdin: bytes = b"") -> str:
    result = await sandbox.run(*arguments, limits=_LIMITS, stdin=stdin)
    if not result.ok:
        reason = result.stderr.decode(errors="replace").strip()[:300]
        raise DemoNotBuilt(f"git {arguments[0]} failed while the demo was built: {reason or result.outcome}.")
    return result.stdout.decode("ascii").strip()


def _is_built(path: Path, commit_sha: str) -> bool:
    """Tell whether ``path`` is a repository that this module built, with that commit."""
    try:
        return (path / _BRANCH).read_text(encoding="ascii").strip() == commit_sha
    except (OSError, ValueError):
        return False


def _install(built: Path, path: Path, commit_sha: str) -> None:
    """Move the finished repository to ``path`` and replace the one of an earlier release."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        if path.exists():
            path.rename(built.with_name("earlier.git"))
        shutil.move(built, path)
    except OSError as error:
        # A race: another process that started at the same time may have installed it.
        if not _is_built(path, commit_sha):
            raise DemoNotBuilt(f"The demo could not be put to {path}: {error}.") from error
