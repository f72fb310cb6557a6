"""Build the demo: a bare git repository of the skills that lie beside this module, the same commit every time."""

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
# What of this folder is the demo; the rest of it is code.
CONTENT: Final = ("README.md", "skills")
# What a checkout of this project should not hold: a link that leads out of its folder.
LINKS: Final = {"skills/shared-glossary/glossary.md": "../../../../etc/glossary.md"}
_WHO: Final = "vskill demo <demo@vskill.invalid> 1704067200 +0000"
_MESSAGE: Final = "Add the demo skills"
_BRANCH: Final = "refs/heads/main"
_LIMITS: Final = ChildLimits(seconds=30, output_bytes=64 * 1024)


class DemoNotBuilt(VskillError):
    """The demo repository could not be made; one that was there before is as it was."""

    code = "demo_not_built"


@dataclass(frozen=True)
class DemoRepository:
    """A repository on this machine and its one commit."""

    path: Path
    commit_sha: str

    @property
    def url(self) -> str:
        """Return the address to submit."""
        return self.path.as_uri()


def demo_path(data_dir: Path) -> Path:
    """Return where the demo lies in a data directory: below a folder that the default settings accept."""
    return data_dir / "demo" / "skills.git"


async def build_demo_repository(path: Path) -> DemoRepository:
    """Make the repository at ``path``, or leave it alone where it has the right commit already; raise
    ``DemoNotBuilt``."""
    async with scratch_folder() as folder:
        sandbox = await open_sandbox(folder, configuration=[("core.hooksPath", "/dev/null"), ("gc.auto", "0")])
        await _git(sandbox, "symbolic-ref", "HEAD", _BRANCH)
        await _git(sandbox, "fast-import", "--quiet", stdin=_stream(_files(FOLDER, CONTENT), LINKS))
        commit_sha = await _git(sandbox, "rev-parse", "--verify", f"{_BRANCH}^{{commit}}")
        if _has(path, commit_sha):
            return DemoRepository(path, commit_sha)
        _put(sandbox.git_dir, path, commit_sha)
    return DemoRepository(path, commit_sha)


def _files(folder: Path, content: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Yield path and bytes of every file, in one order on every machine."""
    found = [path for name in content for path in (folder / name, *(folder / name).rglob("*"))]
    paths = {unicodedata.normalize("NFC", path.relative_to(folder).as_posix()): path for path in found}
    for name, path in sorted(paths.items()):
        # A file manager's and an interpreter's leavings are no part of the demo.
        if path.is_file() and not any(part.startswith((".", "__")) for part in path.relative_to(folder).parts):
            yield name, path.read_bytes()


def _stream(files: Iterator[tuple[str, bytes]], links: Mapping[str, str]) -> bytes:
    """Return one commit in the language of ``git fast-import``."""
    parts = [f"commit {_BRANCH}\nauthor {_WHO}\ncommitter {_WHO}\n".encode(), _data(_MESSAGE.encode())]
    parts += [b"M 100644 inline " + name.encode() + b"\n" + _data(content) for name, content in files]
    parts += [b"M 120000 inline " + name.encode() + b"\n" + _data(target.encode()) for name, target in links.items()]
    return b"".join(parts)


def _data(content: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(content), content)


async def _git(sandbox: GitSandbox, *arguments: str, stdin: bytes = b"") -> str:
    result = await sandbox.run(*arguments, limits=_LIMITS, stdin=stdin)
    if not result.ok:
        told = result.stderr.decode(errors="replace").strip()[:300]
        raise DemoNotBuilt(f"git {arguments[0]} failed while the demo was built: {told or result.outcome}.")
    return result.stdout.decode("ascii").strip()


def _has(path: Path, commit_sha: str) -> bool:
    """Return whether the repository at ``path`` is one that this module put there with that commit."""
    try:
        return (path / _BRANCH).read_text(encoding="ascii").strip() == commit_sha
    except (OSError, ValueError):
        return False


def _put(made: Path, path: Path, commit_sha: str) -> None:
    """Move the finished repository to its place; the one of an earlier release gives way."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        if path.exists():
            path.rename(made.with_name("earlier.git"))
        shutil.move(made, path)
    except OSError as error:
        # Another process of the same start may have been first.
        if not _has(path, commit_sha):
            raise DemoNotBuilt(f"The demo could not be put to {path}: {error}.") from error
