"""What pages say of a skill or a version that is not shown."""

from __future__ import annotations

from typing import Final

from marketplace.addresses import skill_href
from marketplace.catalog import find_skill_sync
from marketplace.pages.skill import why_absent
from marketplace.skills.near_names import near_slugs
from vskill.environments import WorkerEnv
from vskill.web.absent import Near, NotThere

NOT_PUBLISHED: Final = (
    "There is no published skill of this name. It may have been withdrawn, or never passed its checks."
)
NO_VERSION: Final = "This skill has no such version, or that version was withdrawn for safety."


def absent(env: WorkerEnv, slug: str, version: str) -> NotThere:
    """Return the error for a skill or a version that is not shown, with the reason or with what is near to it."""
    if reason := why_absent(env, slug, version):
        return NotThere(reason)
    if version and find_skill_sync(env, slug) is not None:
        return NotThere(NO_VERSION, [Near("the latest version", skill_href(slug))])
    return NotThere(NOT_PUBLISHED, [Near(name, skill_href(name)) for name in near_slugs(env, slug)])
