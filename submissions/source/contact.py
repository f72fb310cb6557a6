"""Where a repository may be asked: each spelling of its address, with its host checked and its sandbox made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from submissions.source.errors import HostNotAllowed, RepositoryNotFound
from submissions.source.git_process import FetchLimits, GitSandbox, fetch_configuration, open_sandbox
from submissions.source.local import own_git_directory
from submissions.source.origin import Origin
from submissions.source.pinning import pin
from submissions.source.ssh import SSH, key_for
from submissions.source.urls import RepositoryURL, SourcePolicy, resolve_below


async def contacts(
    repository: RepositoryURL, directory: Path, policy: SourcePolicy, limits: FetchLimits
) -> AsyncIterator[tuple[GitSandbox, Origin]]:
    """Yield each address at which ``repository`` may be, as an origin, with a sandbox in ``directory`` to ask it from.

    Some hosts accept only addresses that end in `.git`, others only those that do not. The canonical address has no
    `.git`, so both spellings are tried; a caller stops at the first that answers. ``limits`` are those of the fetch.
    Raises HostNotAllowed where ``policy`` does not let a host be contacted, and FetchFailed where it is not found.
    """
    # In a thread, because this walks the folder of a local repository.
    for url in await asyncio.to_thread(lambda: list(_addresses_to_try(repository, policy))):
        configuration = await _configuration(url, policy, limits)
        sandbox = await open_sandbox(directory, configuration=configuration)
        yield sandbox, Origin.under(policy, url, configuration, repository.host)


def nothing_there() -> RepositoryNotFound:
    """Return the error for a repository without any address at which it may be."""
    return RepositoryNotFound(
        "There is no such folder, or it holds no git repository of its own: one with links, alternates or a pointer to "
        "another folder is not fetched."
    )


def _addresses_to_try(repository: RepositoryURL, policy: SourcePolicy) -> Iterator[str]:
    url = repository.url
    for prefix, replacement in policy.rewrites:
        if url.startswith(prefix):
            url = replacement + url[len(prefix) :]
            break
    if (key := key_for(policy.ssh_keys, url)) is not None:
        url = key.address(url)
    candidates = [url, f"{url}.git"]
    if "gitlab" in (urlsplit(url).hostname or ""):
        # GitLab redirects the spelling without `.git`, so this order saves a request.
        candidates.reverse()
    if not url.startswith("file://"):
        yield from candidates
        return
    mirrors = [
        Path(unquote(urlsplit(target).path)).resolve() for _, target in policy.rewrites if target.startswith("file://")
    ]
    for candidate in candidates:
        # Resolved again, because a link may have been created since the address was accepted.
        path = Path(unquote(urlsplit(candidate).path)).resolve()
        allowed = path in mirrors or resolve_below(str(path), (*policy.file_roots, *mirrors))
        git_dir = own_git_directory(path) if allowed and path.is_dir() else None
        if git_dir is not None:
            yield f"file://{quote(str(git_dir))}"


async def _configuration(url: str, policy: SourcePolicy, limits: FetchLimits) -> list[tuple[str, str]]:
    parts = urlsplit(url)
    if parts.scheme == "file":
        return fetch_configuration(safe_directory=unquote(parts.path))
    # Pinned, so that git connects to a checked address even if the name resolves differently a moment later.
    pinned = await pin(url, policy, seconds=limits.seconds, scheme=parts.scheme)
    if parts.scheme == SSH:
        key = key_for(policy.ssh_keys, url)
        if key is None:
            raise HostNotAllowed(f"This registry has no key for {pinned.host}, so nothing was fetched over ssh.")
        # Behind a proxy no address is known, and the tunnel leads to the host by its name.
        address = pinned.addresses[0] if pinned.addresses else None
        return fetch_configuration(ssh_command=key.command(pinned.host, address))
    addresses = ",".join(f"[{address}]" if ":" in address else address for address in pinned.addresses)
    resolve = f"{pinned.host}:{pinned.port}:{addresses}" if addresses and ":" not in pinned.host else ""
    return fetch_configuration(resolve=resolve, ca_file=policy.ca_file)
