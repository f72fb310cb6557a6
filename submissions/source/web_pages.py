"""Read the address of a page that a host of repositories shows: its repository, and the place in it.

The forms are those of GitHub, GitLab, Gitea and Forgejo, Bitbucket and SourceHut. docs/addresses.md lists them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NoReturn

from submissions.source.errors import InvalidRepositoryURL
from submissions.source.places import Place, folder, is_commit_id, is_possible_ref, places_at

# Hosts whose repositories are owner/name, so that anything after it is a page.
TWO_PARTS: Final = frozenset({"github.com", "bitbucket.org", "codeberg.org", "git.sr.ht"})
_FOLDER_PAGES: Final = frozenset({"tree", "commits"})
_FILE_PAGES: Final = frozenset({"blob", "raw", "blame", "edit"})
_GITEA_PAGES: Final = frozenset({"src", "raw", "media", "commits"})
_GITEA_KINDS: Final = {"branch": "refs/heads/", "tag": "refs/tags/", "commit": ""}
_REF_TYPES: Final = {"heads": "refs/heads/", "tags": "refs/tags/"}
_HARMLESS: Final = frozenset({"tab", "plain", "raw", "inline"})


class _Page:
    """One address: the base of its host, the parts of its path, and its query."""

    def __init__(self, base: str, host: str, parts: Sequence[str], query: Mapping[str, str]) -> None:
        self.base, self.host, self.parts, self.query = base, host, list(parts), dict(query)

    def refuse(self, end: int, what: str = "That is a page of a repository, not the repository.") -> NoReturn:
        raise InvalidRepositoryURL(f"{what} Try {self.base}/{'/'.join(self.parts[:end])}.")


def split_page(
    base: str, host: str, parts: Sequence[str], query: Mapping[str, str]
) -> tuple[list[str], tuple[Place, ...]]:
    """Return the parts of the repository's own address, and the places that the rest of a page's address may mean.

    ``base`` is the scheme and authority for an example, ``parts`` are the decoded parts of the path, ``query`` is the
    query string. There are no places where it is the address of the repository alone. Raises InvalidRepositoryURL,
    with an address that would do, for a page that is not of a folder, and for a query that is not understood.
    """
    page = _Page(base, host, parts, query)
    prefix = _REF_TYPES.get(page.query.pop("ref_type", ""), "")
    at = page.query.pop("at", "")
    for name in page.query:
        if name not in _HARMLESS and not name.startswith("utm_"):
            raise InvalidRepositoryURL(
                f"What ?{name[:20]}=... means in that address is not known here. Leave it out, and name a branch "
                f"as in {base}/{'/'.join(parts[:2])}#main."
            )
    end, places = _divide(page, prefix)
    if at:
        places = _at(page, end, places, at)
    return page.parts[:end], places


def _divide(page: _Page, prefix: str) -> tuple[int, tuple[Place, ...]]:
    """Return how many parts belong to the repository, and the places that the rest may mean."""
    parts = page.parts
    if len(parts) > 3 and "projects" in parts[:-3]:
        place = parts.index("projects")
        if parts[place + 2] == "repos":
            project, name = parts[place + 1].lower(), parts[place + 3].lower()
            _refuse_with(f"{page.base}/{'/'.join([*parts[:place], 'scm', project, name])}")
    if "-" in parts[2:]:
        end = parts.index("-", 2)
        return end, _gitlab(page, end, prefix)
    for end in range(2, len(parts)):
        places = _page_at(page, end, prefix)
        if places is not None:
            return end, places
    if page.host in TWO_PARTS and len(parts) > 2:
        page.refuse(2)
    return len(parts), ()


def _page_at(page: _Page, end: int, prefix: str) -> tuple[Place, ...] | None:
    """Return the places of a page whose repository ends before part ``end``, ``None`` where no page begins there."""
    word, rest = page.parts[end], page.parts[end + 1 :]
    if page.host == "git.sr.ht":
        return _sourcehut(word, rest)
    if page.host == "bitbucket.org" and word in ("src", "branch"):
        return places_at(rest) if rest else ()
    if word in _GITEA_PAGES and page.host != "github.com" and len(rest) > 1 and rest[0] in _GITEA_KINDS:
        return places_at(rest[1:], prefix=_GITEA_KINDS[rest[0]])
    # On other hosts a group may have any depth and any name, so that only the two best known words are read.
    if rest and (page.host in TWO_PARTS or word in ("tree", "blob")):
        if word in _FILE_PAGES:
            return _of_file(page, end, rest, prefix)
        if word in _FOLDER_PAGES:
            return places_at(rest, prefix=prefix)
    if word in ("commit", "commits") and len(rest) == 1 and is_commit_id(rest[0]):
        return places_at(rest)
    if word == "releases" and len(rest) > 1 and rest[0] == "tag":
        return _whole(page, end, rest[1:], "refs/tags/")
    return None


def _gitlab(page: _Page, end: int, prefix: str) -> tuple[Place, ...]:
    word, rest = (page.parts[end + 1], page.parts[end + 2 :]) if len(page.parts) > end + 1 else ("", [])
    if word in _FILE_PAGES and rest:
        return _of_file(page, end, rest, prefix)
    if word in _FOLDER_PAGES and rest:
        return places_at(rest, prefix=prefix)
    if word == "tags" and rest:
        return _whole(page, end, rest, "refs/tags/")
    if word == "commit" and len(rest) == 1 and is_commit_id(rest[0]):
        return places_at(rest)
    return page.refuse(end)


def _sourcehut(word: str, rest: Sequence[str]) -> tuple[Place, ...] | None:
    if word != "tree" or not rest:
        return None
    # The page itself says where the ref ends: /tree/REF/item/FOLDER.
    end = rest.index("item") if "item" in rest else len(rest)
    first = places_at(rest[:end])[0]
    return (replace(first, path=folder(rest[end + 1 :])),)


def _of_file(page: _Page, end: int, rest: Sequence[str], prefix: str) -> tuple[Place, ...]:
    if rest[-1].lower() != "skill.md":
        page.refuse(end, "That is the address of a file. Give that of the folder of a skill, or of its SKILL.md.")
    return places_at(rest, prefix=prefix)


def _whole(page: _Page, end: int, rest: Sequence[str], prefix: str) -> tuple[Place, ...]:
    if not is_possible_ref(name := "/".join(rest)):
        page.refuse(end)
    return (Place(f"{prefix}{name}"),)


def _at(page: _Page, end: int, places: tuple[Place, ...], at: str) -> tuple[Place, ...]:
    """Return the place on a branch that Bitbucket names beside the commit, as in ``/src/COMMIT/FOLDER?at=BRANCH``."""
    known = [one for one in places if one.is_commit or one.ref == at]
    if not known or not is_possible_ref(at):
        page.refuse(end, f"What ?at={at[:40]} means in that address is not known here.")
    return (Place(at, known[0].path),)


def _refuse_with(address: str) -> NoReturn:
    raise InvalidRepositoryURL(f"That is a page of a repository, not the repository. Try {address}.")
