"""Where the relative links and images in a text of a skill lead: to the skill's own files, or to its repository."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import quote

from marketplace.addresses import file_href, skill_href
from marketplace.pages.anchors import PREFIX
from marketplace.pages.file_parts import at_line, line_of
from marketplace.pages.source_links import source_href

RASTER: Final = (".png", ".jpg", ".jpeg", ".gif", ".webp")


@dataclass(frozen=True, slots=True)
class Target:
    """Where a link leads; ``title`` says where it would lead when there is no address for it."""

    href: str = ""
    title: str = ""


NOWHERE: Final = Target()


@dataclass(frozen=True, slots=True)
class TextLinks:
    """The surroundings of one text file of a version.

    ``path`` is that file in the skill, ``paths`` are all files of it, and ``exact`` is the query that pins a link to
    the version. ``repo_url``, ``commit_sha`` and ``skill_path`` say where the skill's folder lies in its repository.
    """

    slug: str
    paths: frozenset[str]
    path: str = "SKILL.md"
    exact: str = ""
    repo_url: str = ""
    commit_sha: str = ""
    skill_path: str = ""

    def link(self, path: str, fragment: str = "") -> Target:
        """Return where the relative ``path`` of a link leads, as the text writes it; ``fragment`` is a part of it."""
        inside, outside = self._resolve(path)
        if inside in self.paths:
            address = f"{file_href(self.slug, inside)}{self.exact}"
            if line := line_of(fragment):
                return Target(at_line(address, line, fragment))
            return Target(f"{address}#{PREFIX}{quote(fragment.lower())}" if fragment else address)
        if inside is not None and inside in _folders(self.paths):
            return Target(f"{skill_href(self.slug)}{self.exact}#files")
        if outside is None:
            return NOWHERE
        # A link to what is in the skill's own folder, but not among its files, is broken there as well.
        return NOWHERE if inside is not None else self._in_repository(outside, is_folder=path.endswith("/"))

    def image(self, path: str) -> str:
        """Return the address of an image of the skill by its relative path; empty where it is not shown here."""
        inside, _ = self._resolve(path)
        if inside is None or inside not in self.paths or not inside.lower().endswith(RASTER):
            return ""
        return image_href(self.slug, inside, self.exact)

    def _in_repository(self, path: str, *, is_folder: bool) -> Target:
        href = source_href(self.repo_url, self.commit_sha, f"{path}/" if is_folder else path)
        if href:
            return Target(href)
        return Target(title=f"{path} in {self.repo_url} at commit {self.commit_sha[:12]}")

    def _resolve(self, path: str) -> tuple[str | None, str | None]:
        """Return a path relative to the skill, and relative to its repository; ``None`` where it is outside of it."""
        start = "" if path.startswith("/") else posixpath.join(self.skill_path, posixpath.dirname(self.path))
        outside = posixpath.normpath(posixpath.join(start, path.lstrip("/")))
        if outside.startswith("..") or not outside.isprintable() or "\\" in outside:
            return None, None
        root = self.skill_path.strip("/")
        if not root:
            return ("" if outside == "." else outside), outside
        if outside == root:
            return "", outside
        return (outside[len(root) + 1 :] if outside.startswith(f"{root}/") else None), outside


@lru_cache(maxsize=128)
def _folders(paths: frozenset[str]) -> frozenset[str]:
    """Return the folders that hold the files at ``paths``, the root as ''."""
    parts = [path.split("/") for path in paths]
    return frozenset("/".join(one[:depth]) for one in parts for depth in range(len(one)))


def image_href(slug: str, path: str, exact: str) -> str:
    """Return the address of one image of a skill; ``exact`` is the query that pins it to a version, or empty."""
    return f"{skill_href(slug, f'images/{quote(path)}')}{exact}"
