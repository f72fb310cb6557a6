"""What pages say of a skill or a version that is not shown."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from marketplace.addresses import file_href, publisher_href, skill_href
from marketplace.catalog import find_skill_sync
from marketplace.pages.skill import Found, why_absent
from marketplace.skills.handles import short_handle
from marketplace.skills.near_filters import near_publishers
from marketplace.skills.near_names import near_paths, near_slugs, near_versions
from vskill.environments import WorkerEnv
from vskill.hidden_characters import visible
from vskill.web.absent import Near, NotThere

NOT_PUBLISHED: Final = (
    "There is no published skill of this name. It may have been withdrawn, or never passed its checks."
)
NOT_OF_OWNER: Final = "This publisher has no published skill of this name. Another one has."
NO_VERSION: Final = "This skill has no such version, or that version was withdrawn for safety."


def absent(env: WorkerEnv, slug: str, version: str) -> NotThere:
    """Return the error for a skill or a version that is not shown, with the reason or with what is near to it."""
    if reason := why_absent(env, slug, version):
        return NotThere(reason)
    if version and (skill := find_skill_sync(env, slug)) is not None:
        near = [Near(one, skill_href(slug) + f"?version={quote(one)}") for one in near_versions(env, skill, version)]
        return NotThere(NO_VERSION, [*near, Near("the latest version", skill_href(slug))])
    return NotThere(NOT_PUBLISHED, [Near(name, skill_href(name)) for name in near_slugs(env, slug)])


def absent_of_owner(env: WorkerEnv, handle: str, slug: str) -> NotThere:
    """Return the error for a skill that a publisher does not have: it is of another one, or what is near is named."""
    if (skill := find_skill_sync(env, slug.lower())) is not None:
        owned = f"@{short_handle(skill.publisher_handle)}/{skill.slug}"
        return NotThere(NOT_OF_OWNER, [Near(owned, skill_href(skill.slug))])
    missing = absent(env, slug, "")
    if not missing.near:
        missing.near = tuple(Near(name, publisher_href(name)) for name in near_publishers(env, handle))
    return missing


def no_file(found: Found, path: str) -> NotThere:
    """Return the error for a file that a version does not have, with files of it that are near."""
    near = near_paths((one["path"] for one in found.version.manifest), path)
    return NotThere(
        f"This version has no file {path!r}.",
        [Near(visible(one), file_href(found.skill.slug, one) + found.exact) for one in near],
    )
