"""Errors of fetching a repository.

SourceError
├── InvalidRepositoryURL   the text names no repository that may be fetched
├── HostNotAllowed         the host is not on the public internet
├── RepositoryNotFound     missing, or private
│   └── RepositoryRefused  the host forbids it: private, or this server is not welcome at the moment
├── RepositoryEmpty        nothing has been committed
├── RepositoryMoved        the host answers with a redirect
├── CommitNotAvailable     the host no longer has the pinned commit
├── CommitNotOnBranch      a pinned commit is on no branch or tag
├── RepositoryTooLarge     over one of the limits
├── FetchTimedOut          the time limit passed            (transient)
├── FetchFailed            any other failure of git         (transient)
├── GitUnavailable         git itself is missing or too old (transient)
├── UnsafeTree             a tree with links, submodules or odd names
├── TooManySkills          more skill folders than may be listed       (verification/errors.py)
└── InvalidPackage         the folder is no valid skill                (verification/errors.py)
"""

from __future__ import annotations

from typing import ClassVar, Final

from vskill.errors import VskillError

EXAMPLE: Final = "Use an address such as https://github.com/owner/repository."
NAMES_A_USER: Final = (
    "That address contains a user, password or token before the @. It was neither used nor stored: take it out, and "
    "revoke it if it is a real secret. For a repository that asks for sign-in an operator can add a credential. "
    f"{EXAMPLE}"
)


class SourceError(VskillError):
    """Base of the errors of this package; ``transient`` says whether a later attempt can succeed."""

    code = "source_error"
    transient: ClassVar[bool] = False


class InvalidRepositoryURL(SourceError):
    """Raised when a text names no repository that may be fetched; nothing was contacted."""

    code = "invalid_repository_url"


class HostNotAllowed(SourceError):
    """Raised when a host name resolves to an address off the public internet; nothing was contacted."""

    code = "host_not_allowed"


class RepositoryNotFound(SourceError):
    """Raised when the host shows no such repository to anonymous clients."""

    code = "repository_not_found"


class RepositoryRefused(RepositoryNotFound):
    """Raised when the host forbids the repository, which some do with private ones and some with busy clients."""


class RepositoryEmpty(SourceError):
    """Raised when the repository, or the requested branch, has no commit."""

    code = "repository_empty"


class RepositoryMoved(SourceError):
    """Raised when the host answers with a redirect, which is never followed."""

    code = "repository_moved"


class CommitNotAvailable(SourceError):
    """Raised when the host no longer has the pinned commit."""

    code = "commit_not_available"


class CommitNotOnBranch(SourceError):
    """Raised when a commit that was asked for by its id is on no branch or tag of the repository, or may not be."""

    code = "commit_not_on_branch"


class RepositoryTooLarge(SourceError):
    """Raised when a repository exceeds a limit of size, number of files or memory."""

    code = "repository_too_large"


class FetchTimedOut(SourceError):
    """Raised when a fetch did not finish within its time limit."""

    code = "fetch_timed_out"
    transient = True


class FetchFailed(SourceError):
    """Raised for any other failure of git; the message has git's first useful line, made safe to show."""

    code = "fetch_failed"
    transient = True


class GitUnavailable(SourceError):
    """Raised when this machine has no git, or one that is too old."""

    code = "git_unavailable"
    transient = True


class UnsafeTree(SourceError):
    """Raised when a tree holds a link, a submodule or an odd name; nothing was written."""

    code = "unsafe_tree"
