"""The collection of the demo: some of its published skills, one pinned and the others following."""

from __future__ import annotations

from typing import Final

from marketplace.catalog import is_visible
from marketplace.skill_sets.editing import Choice, Told, create_collection
from marketplace.skill_sets.reading import find_collection
from marketplace.skills.publishers import skill_identity
from marketplace.skills.store import skills_of_identity
from vskill.environments import WorkerEnv

SLUG: Final = "release-day"
_TITLE: Final = "Release day"
_PURPOSE: Final = (
    "What the demo's team has at hand on the day of a release, from the notes to the last look at the pages."
)
_PINNED: Final = "skills/release-notes"
# Paths in the demo's repository, in the order of the set, with the notes.
_NOTES: Final = {
    _PINNED: "Pinned: our template fits this version.",
    "skills/sql-review": "Before a migration goes out.",
    "skills/link-check": "",
    "skills/colour-contrast": "For the announcement.",
}


def make_demo_collection(env: WorkerEnv, repo_url: str, *, actor: str) -> bool:
    """Make the collection of the demo from the skills of ``repo_url``, and return whether there is one now.

    Nothing is made before each of its skills is published, and an existing one is left as it is. ``actor`` goes into
    the history.
    """
    if find_collection(env, SLUG) is not None:
        return True
    choices = []
    for path, note in _NOTES.items():
        skill = skills_of_identity(env, skill_identity(repo_url, path)).first()
        if skill is None or not is_visible(skill) or not skill.latest_version:
            return False
        choices.append(Choice(skill.slug, skill.latest_version if path == _PINNED else "", note))
    told = Told(_TITLE, _PURPOSE, tuple(choices))
    create_collection(env, SLUG, told, actor=actor, reason="To show what a collection is.")
    return True
