"""How each client is called, with the addresses and names that it takes; nothing else in the product writes that."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from marketplace.addresses import plugin_list_name

# By the keys that the API gives them, in the order in which pages show them.
LABELS: Final = {
    "skills": "skills",
    "claude": "Claude Code",
    "codex": "Codex",
    "clawhub": "ClawHub",
    "apm": "apm",
    "git": "git",
    "curl": "curl",
    "mcp": "MCP",
}
# Stands in commands for a token of whoever runs them, where the registry shows something to none but those it knows.
TOKEN: Final = "TOKEN"  # noqa: S105 - a word
_BEARING: Final = f"Authorization: Bearer {TOKEN}"
_VARIABLE: Final = "SKILLS_TOKEN"
APM_NOTE: Final = (
    "It installs for the agents that the project has a folder of, such as .claude, or for those named with -t."
    " The third line makes this registry the one that apm asks for all such names, in every project of yours."
)


@dataclass(frozen=True, slots=True)
class Host:
    """A host of MCP and the ``command`` by which it connects to the registry."""

    key: str
    command: str

    @property
    def label(self) -> str:
        """Return the name of the host."""
        return LABELS[self.key]


@dataclass(frozen=True, slots=True)
class InstallLine:
    """What one client installs with: a ``command`` to copy, of one line or more.

    ``installs`` says of one skill in words which version that is; of a set it is empty. ``follow`` is the command for
    those who want later versions too, empty where the other one does that or where there is none. ``before`` is what a
    client wants to be told before it takes another version. ``hosts`` have commands of their own for the same.
    """

    key: str
    command: str
    note: str = ""
    installs: str = ""
    follow: str = ""
    before: str = ""
    hosts: tuple[Host, ...] = ()

    @property
    def label(self) -> str:
        """Return the name of the client."""
        return LABELS[self.key]


@dataclass(frozen=True, slots=True)
class Archive:
    """An archive: its address, the ``file`` that it is saved as, and its SHA-256 (hex)."""

    url: str
    file: str
    sha256: str


def with_skills(address: str, *options: str) -> str:
    """Return the command of ``skills`` for what has an index below ``address``."""
    return " ".join(["npx skills add", shlex.quote(address), *map(shlex.quote, options)])


def git_token(base: str) -> str:
    """Return the command after which git, and every client that runs it, sends a token to the registry."""
    return f"git config --global {shlex.quote(f'http.{base}/.extraHeader')} {shlex.quote(_BEARING)}"


def clawhub_token(base: str) -> str:
    """Return the commands after which ``clawhub`` knows the registry in this shell, and sends a token to it."""
    return f"export {clawhub_registry(base)}\nnpx clawhub login --token {TOKEN} --no-input"


def clawhub_registry(base: str) -> str:
    """Return the assignment by which ``clawhub`` knows the registry."""
    return f"CLAWHUB_REGISTRY={shlex.quote(base)}"


def with_clawhub(slug: str, version: str = "") -> str:
    """Return the command of ``clawhub`` for a version of a skill, by default the latest; see ``clawhub_registry``."""
    return f"npx clawhub install {slug}" + (f" --version {shlex.quote(version)}" if version else "")


def with_claude(address: str, name: str, slugs: Iterable[str]) -> str:
    """Return the commands of Claude Code for skills in the list of plugins at ``address``, which is called ``name``."""
    installs = (f"claude plugin install {slug}@{name}" for slug in slugs)
    return "\n".join([f"claude plugin marketplace add {shlex.quote(address)}", *installs])


def with_codex(repository: str, name: str, slugs: Iterable[str], ref: str = "") -> str:
    """Return the commands of Codex for skills in a repository at a ``ref``, whose catalogue is called ``name``."""
    at = f" --ref {shlex.quote(ref)}" if ref else ""
    installs = (f"codex plugin add {slug}@{name}" for slug in slugs)
    return "\n".join([f"codex plugin marketplace add {shlex.quote(repository)}{at}", *installs])


def with_apm(base: str, packages: Sequence[str], *, bearing: bool = False) -> str:
    """Return the commands of ``apm`` for packages, each ``OWNER/SKILL#VERSION`` or with a range of versions.

    Where they need a token (``bearing``) there is none over plain http, over which ``apm`` sends no token.
    """
    if bearing and not base.startswith("https://"):
        return ""
    setting = f"apm config set registry.{plugin_list_name(base, '')}"
    return "\n".join(
        [
            "apm experimental enable registries",
            f"{setting}.url {shlex.quote(f'{base}/api/apm')}",
            f"{setting}.default true",
            *([f"{setting}.token {TOKEN}"] if bearing else []),
            " ".join(["apm install", *map(shlex.quote, packages)]),
        ]
    )


def with_git(repository: str, tag: str = "") -> str:
    """Return the command of git for a repository, at a ``tag`` where one is given."""
    at = f"--branch {shlex.quote(tag)} " if tag else ""
    return f"git clone {at}{shlex.quote(repository)}"


def with_curl(archives: Sequence[Archive], *, bearing: bool = False) -> str:
    """Return commands that fetch archives and say of each whether it is the one that was checked.

    ``bearing`` is whether that needs a token.
    """
    curl = f"curl -fsSL -H {shlex.quote(_BEARING)}" if bearing else "curl -fsSL"
    fetched = [f"-o {one.file} {shlex.quote(one.url)}" for one in archives]
    sums = [f"'{one.sha256}  {one.file}'" for one in archives]
    if len(archives) == 1:
        return f"{curl} {fetched[0]}\necho {sums[0]} | sha256sum -c"
    on = " \\\n  "
    return on.join([curl, *fetched]) + "\n" + on.join(["printf '%s\\n'", *sums]) + " | sha256sum -c"


def hosts_of_mcp(base: str, *, bearing: bool = False) -> tuple[Host, ...]:
    """Return the hosts of MCP that connect to the registry by a command; ``bearing`` is whether that needs a token."""
    name, address = plugin_list_name(base, ""), shlex.quote(f"{base}/mcp")
    header = f" --header {shlex.quote(_BEARING)}" if bearing else ""
    # It reads the token whenever it starts.
    variable, known = (f" --bearer-token-env-var {_VARIABLE}", f"export {_VARIABLE}={TOKEN}\n") if bearing else ("", "")
    return (
        Host("claude", f"claude mcp add --transport http {name} {address}{header}"),
        Host("codex", f"{known}codex mcp add {name} --url {address}{variable}"),
    )
