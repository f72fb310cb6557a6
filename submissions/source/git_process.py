"""Run the git binary with no configuration but our own.

The binary is used rather than a library, for three reasons: every host is tested against it, it reads shallow packs of
any shape, and it runs in a child process that can be limited and killed.
"""

from __future__ import annotations

import re
import shutil
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from submissions.sandbox.child_processes import ChildLimits, ChildResult, run_child
from submissions.source.errors import GitUnavailable
from submissions.source.origin import Origin

# The first with http.curloptResolve, which pins the checked address.
_OLDEST_GIT = (2, 37)
# Fixed, so that the PATH and the working directory of the server do not decide which git runs.
SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin"
# Where the system keeps the authorities that everybody trusts, a file for each.
SYSTEM_AUTHORITIES = ssl.get_default_verify_paths().capath or "/etc/ssl/certs"
_CONFIG_NAME = "vskill.gitconfig"
_READING = "reading.git"
_REPOSITORY_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"
_MIB = 1024 * 1024


@dataclass(frozen=True)
class FetchLimits:
    """The budget of one fetch.

    ``seconds`` is wall-clock time for the whole fetch. ``pack_bytes`` bounds what is downloaded. ``files`` and
    ``tree_bytes`` bound the files that are asked for, by number and by unpacked size; ``listed_files`` bounds the list
    that they are chosen from. ``memory_bytes`` bounds the address space of each git process.
    """

    seconds: float = 60
    pack_bytes: int = 100 * _MIB
    files: int = 5000
    tree_bytes: int = 200 * _MIB
    listed_files: int = 100_000
    memory_bytes: int = 1024 * _MIB

    def for_child(self, output_bytes: int = 64 * 1024) -> ChildLimits:
        """Return the limits of one git process that may print ``output_bytes``."""
        return ChildLimits(
            seconds=self.seconds,
            output_bytes=output_bytes,
            address_space=self.memory_bytes,
            cpu_seconds=int(self.seconds) + 1,
            file_bytes=self.pack_bytes,
        )


@dataclass(frozen=True)
class GitSandbox:
    """A folder with a bare repository and the only configuration file that git reads."""

    git: str
    directory: Path

    @property
    def git_dir(self) -> Path:
        """Return the path of the bare repository."""
        return self.directory / "repository.git"

    def forbid_lazy_fetches(self) -> None:
        """Take back what a fetch with a filter wrote into the configuration of the repository.

        Without it git knows no host that it could ask for a missing object, so that an object which was not fetched is
        missing, for every version of git.
        """
        (self.git_dir / "config").write_text(_REPOSITORY_CONFIG, encoding="ascii")

    async def read(self, *arguments: str, limits: ChildLimits, stdin: bytes = b"") -> ChildResult:
        """Run a git command that reads objects by their ids; an object that was not fetched is missing for it.

        Its repository has the same objects and a configuration of its own: that of the first one names a host to ask
        for missing objects while somebody else fetches into a snapshot that is shared. ``limits`` bound the process and
        ``stdin`` is its input.
        """
        objects = {"GIT_OBJECT_DIRECTORY": str(self.git_dir / "objects")}
        return await self._run(self.directory / _READING, *arguments, limits=limits, stdin=stdin, variables=objects)

    async def run(
        self, *arguments: str, limits: ChildLimits, origin: Origin | None = None, stdin: bytes = b""
    ) -> ChildResult:
        """Run one git command and return its result, whatever its exit status.

        ``limits`` bound the process. ``origin`` is the only place that it may talk to, and only by its protocol; what
        the host says to our login has no secret any more. ``stdin`` is its input.
        """
        variables = origin.variables() if origin is not None else {}
        result = await self._run(self.git_dir, *arguments, limits=limits, stdin=stdin, variables=variables)
        return result if origin is None else replace(result, stderr=origin.scrub(result.stderr))

    async def _run(
        self, git_dir: Path, *arguments: str, limits: ChildLimits, stdin: bytes, variables: Mapping[str, str]
    ) -> ChildResult:
        argv = [self.git, f"--git-dir={git_dir}", *arguments]
        env = {
            "PATH": SEARCH_PATH,
            "HOME": str(self.directory),
            "XDG_CONFIG_HOME": str(self.directory),
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": str(self.directory / _CONFIG_NAME),
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_ALLOW_PROTOCOL": "none",
            "GIT_PROTOCOL_FROM_USER": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "",
            "SSH_ASKPASS": "",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_CEILING_DIRECTORIES": str(self.directory.parent),
            **variables,
        }
        return await run_child(argv, env=env, cwd=self.directory, limits=limits, stdin=stdin)


async def open_sandbox(directory: Path, *, configuration: Sequence[tuple[str, str]]) -> GitSandbox:
    """Create a bare repository with this ``configuration`` (key, value) in ``directory``; raises GitUnavailable."""
    git = await _find_git(directory)
    lines = [f"{_section(key)}\n\t{key.rpartition('.')[2]} = {_quoted(value)}\n" for key, value in configuration]
    (directory / _CONFIG_NAME).write_text("".join(lines), encoding="utf-8")
    sandbox = GitSandbox(git, directory)
    _make_repository(sandbox.git_dir)
    _make_repository(directory / _READING)
    return sandbox


async def reopen_sandbox(directory: Path) -> GitSandbox:
    """Return the sandbox that ``open_sandbox`` made in ``directory`` before; raises GitUnavailable."""
    return GitSandbox(await _find_git(directory), directory)


def _make_repository(git_dir: Path) -> None:
    """Make an empty bare repository, as `git init` does, but without a process and without templates."""
    for folder in ("objects", "refs"):
        (git_dir / folder).mkdir(parents=True, exist_ok=True)
    (git_dir / "HEAD").write_text("ref: refs/heads/none\n", encoding="ascii")
    (git_dir / "config").write_text(_REPOSITORY_CONFIG, encoding="ascii")


def fetch_configuration(
    *, resolve: str = "", safe_directory: str = "", ca_file: Path | None = None, ssh_command: str = ""
) -> list[tuple[str, str]]:
    """Return the git settings for a fetch that does nothing but receive one pack.

    ``resolve`` is a value of ``http.curloptResolve``, '' when there is no name to resolve. ``safe_directory`` is the
    local repository to fetch from, '' for a remote one. ``ca_file`` is a PEM file of additional authorities.
    ``ssh_command`` is what git runs for a repository that is read over ssh, '' for any other.
    """
    settings = [
        ("protocol.allow", "never"),
        ("protocol.https.allow", "user"),
        ("protocol.file.allow", "user"),
        ("protocol.version", "2"),
        ("http.followRedirects", "false"),
        ("http.sslVerify", "true"),
        ("http.lowSpeedLimit", "1000"),
        ("http.lowSpeedTime", "20"),
        ("http.emptyAuth", "false"),
        ("credential.helper", ""),
        ("core.hooksPath", "/dev/null"),
        ("core.fsmonitor", "false"),
        ("core.askPass", ""),
        ("core.symlinks", "false"),
        ("core.bigFileThreshold", "4m"),
        ("init.templateDir", ""),
        ("fetch.recurseSubmodules", "false"),
        ("submodule.recurse", "false"),
        ("fetch.writeCommitGraph", "false"),
        # Packs are kept as one file each, so that the limit on file size bounds them.
        ("fetch.unpackLimit", "1"),
        ("transfer.bundleURI", "false"),
        ("transfer.credentialsInUrl", "die"),
        ("gc.auto", "0"),
        ("maintenance.auto", "false"),
        ("pack.threads", "1"),
        ("advice.detachedHead", "false"),
    ]
    if resolve:
        settings.append(("http.curloptResolve", resolve))
    if safe_directory:
        settings.append(("safe.directory", safe_directory))
    if ssh_command:
        settings += [("core.sshCommand", ssh_command), ("ssh.variant", "ssh")]
    if ca_file is not None:
        settings.append(("http.sslCAInfo", str(ca_file)))
        # Otherwise some builds of git would trust that file alone, and no public host.
        if Path(SYSTEM_AUTHORITIES).is_dir():
            settings.append(("http.sslCAPath", SYSTEM_AUTHORITIES))
    return settings


def _section(key: str) -> str:
    section, _, subsection = key.rpartition(".")[0].partition(".")
    return f'[{section} "{subsection}"]' if subsection else f"[{section}]"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


# Git binaries whose version has been checked by this process.
_CHECKED: set[str] = set()


async def _find_git(directory: Path) -> str:
    git = shutil.which("git", path=SEARCH_PATH)
    if git is None:
        raise GitUnavailable("git is not installed on this machine. Install git 2.37 or newer.")
    if git not in _CHECKED:
        limits = ChildLimits(seconds=10, output_bytes=4096)
        answer = await run_child([git, "version"], env={"LC_ALL": "C"}, cwd=directory, limits=limits)
        match = re.search(rb"git version (\d+)\.(\d+)", answer.stdout)
        if match is None or (int(match[1]), int(match[2])) < _OLDEST_GIT:
            raise GitUnavailable("The git on this machine is too old. Install git 2.37 or newer.")
        _CHECKED.add(git)
    return git
