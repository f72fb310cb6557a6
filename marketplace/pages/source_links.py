"""Addresses of the pages on which a host shows a repository at one commit."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, urlsplit

# By host, and by a word in its name, as self-hosted ones are called.
_FORMS: Final = {
    "github.com": "blob/{commit}",
    "gitlab.com": "-/blob/{commit}",
    "codeberg.org": "src/commit/{commit}",
    "bitbucket.org": "src/{commit}",
    "git.sr.ht": "tree/{commit}/item",
}
_NAMED: Final = {"gitlab": "gitlab.com", "gitea": "codeberg.org", "forgejo": "codeberg.org", "github": "github.com"}


def source_href(repo_url: str, commit_sha: str, path: str = "") -> str:
    """Return the address of a file or folder of a repository at a commit; empty where the host's form is not known.

    ``path`` is relative to the root of the repository, and ends with a slash where it is known to be a folder.
    """
    parts = urlsplit(repo_url)
    host = (parts.hostname or "").removeprefix("www.")
    # The name in full: a host is called gitlab.example.org, and not not-gitlab.example.org.
    host = host if host in _FORMS else _NAMED.get(host.partition(".")[0], "")
    if parts.scheme != "https" or not host or not commit_sha:
        return ""
    form = _FORMS[host]
    if not path or path.endswith("/"):
        form = form.replace("blob/", "tree/")
    below = f"/{quote(path.strip('/'))}" if path.strip("/") else ""
    return f"{repo_url}/{form.format(commit=quote(commit_sha))}{below}"
