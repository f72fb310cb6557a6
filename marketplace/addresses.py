"""Addresses that the marketplace gives out: the base URL of the registry and the paths of its pages."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final
from urllib.parse import quote, urlsplit

from django.http import HttpRequest, HttpResponsePermanentRedirect
from django.urls import get_script_prefix, reverse

from vskill.environments import WorkerEnv
from vskill.hidden_characters import visible

# Stands as the ref of what was uploaded, which is on no branch; git's refs are HEAD, or begin with refs/.
UPLOAD_REF: Final = "UPLOAD"
# What Django leaves as it is in an address.
_SAFE: Final = "!$&'()*+,;=/~:@"
# In the query string of an archive that stands in a list of several.
LISTED: Final = "listed"


def public_base(request: HttpRequest, env: WorkerEnv) -> str:
    """Return the base URL under which clients reach this registry, without a trailing slash.

    It is the environment's ``public_url``, or the scheme and host of the request where none is configured.
    """
    return env.public_url or f"{request.scheme}://{request.get_host()}"


def skill_href(slug: str, below: str = "") -> str:
    """Return the path of a skill's page, or of ``below`` under it."""
    address = page_address("marketplace:skill", slug)
    return f"{address}/{below}" if below else address


def present_page(request: HttpRequest, slug: str, below: str = "") -> HttpResponsePermanentRedirect:
    """Return a redirect from a page under a former slug to the same page, or ``below`` it, under the present one."""
    query = f"?{request.GET.urlencode()}" if request.GET else ""
    return HttpResponsePermanentRedirect(skill_href(slug, below) + query)


def archive_href(slug: str, version: str, kind: str, *, listed: bool = False) -> str:
    """Return the address of the archive of a version; ``kind`` is ``zip`` or ``tar.gz``.

    ``listed`` marks one that stands in a list of several, of which clients fetch all, whatever is wanted of it.
    """
    address = skill_href(slug, f"download/{quote(version, safe=_SAFE)}.{kind}")
    return f"{address}?{LISTED}" if listed else address


def version_href(slug: str, version: str) -> str:
    """Return the path below which clients find one version of a skill, and which leads to its page."""
    return skill_href(slug, f"versions/{quote(version, safe=_SAFE)}")


def publisher_href(handle: str) -> str:
    """Return the path of a publisher's page, or an empty string for an empty handle."""
    return page_address("marketplace:publisher", handle) if handle else ""


def collection_href(slug: str) -> str:
    """Return the path of a collection's page."""
    return page_address("marketplace:collection", slug)


def repository_url(base: str, handle: str, slug: str) -> str:
    """Return the address of the git repository of a skill in the registry at ``base``."""
    return f"{base}/git/{quote(handle, safe=_SAFE)}/{slug}.git"


def shared_repository_url(base: str, collection: str) -> str:
    """Return the address of the git repository of a collection in the registry at ``base``."""
    return f"{base}/git/-/{collection}.git"


def plugin_list_name(base: str, part: str) -> str:
    """Return what Claude Code calls the list of plugins of a ``part`` of the registry at ``base``; '' is the whole.

    A client knows one list by one name, so those of two registries are called differently.
    """
    return re.sub(r"[^a-z0-9]+", "-", f"{part}-{urlsplit(base).netloc}".lower()).strip("-")


def catalogue_name(part: str) -> str:
    """Return what the catalogues in a repository are called; ``part`` is a skill, a short handle or a collection.

    Codex takes letters, digits, underscores and hyphens alone.
    """
    return f"vskill-{part}"


def page_address(page: str, name: str) -> str:
    """Return the path of the ``page`` (such as ``marketplace:skill``) whose address ends with ``name``."""
    return _above(page, get_script_prefix()) + quote(name, safe=_SAFE)


@lru_cache(maxsize=16)
def _above(page: str, _prefix: str) -> str:
    """Return the address of a page without the name that it ends with; a list has dozens, and ``reverse`` is slow."""
    return reverse(page, args=["x"]).removesuffix("x")


def file_href(slug: str, path: str) -> str:
    """Return the path of the page that shows one file of a skill."""
    return skill_href(slug, f"files/{quote(path)}")


def repository_of(skill_url: str, version_url: str) -> str:
    """Return the address of the repository that a version is from.

    ``version_url`` is the one that is written of the version, because its skill, whose is ``skill_url``, changed hands
    since; it is empty otherwise.
    """
    return version_url or skill_url


def ref_words(ref: str) -> str:
    """Return in words which branch or tag a stored ref is, safe to show; '' for none, as of an upload.

    ``HEAD`` is the default branch. A name without ``refs/`` is the one in the address, a branch or a tag.
    """
    kinds = {"refs/heads/": "branch ", "refs/tags/": "tag "}
    for prefix, words in kinds.items():
        if ref.startswith(prefix):
            return visible(words + ref.removeprefix(prefix), 120)
    if ref == UPLOAD_REF:
        return ""
    return "the default branch" if ref == "HEAD" else visible(ref, 120)
