"""Stars: who likes a skill. A star is an entry of its own, so that nobody waits for a count."""

from __future__ import annotations

from marketplace.models import SkillEntry
from vskill.environments import WorkerEnv
from vskill.kv.errors import VersionConflict
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.read_only_admin import prefix_range


def star(env: WorkerEnv, skill: SkillEntry, user: int) -> bool:
    """Give a skill the star of a ``user``, by primary key; return ``False`` where it had that already."""
    try:
        KVNamespace(KVEntry, env).put_sync(_key(skill, user), {}, expect_version=0)
    except VersionConflict:
        return False
    return True


def unstar(env: WorkerEnv, skill: SkillEntry, user: int) -> bool:
    """Take the star of a ``user`` from a skill; return ``False`` where it had none."""
    return KVNamespace(KVEntry, env).delete_sync(_key(skill, user))


def stars_of(env: WorkerEnv, skill: SkillEntry) -> int:
    """Return how many accounts have given a skill a star, under whatever slug."""
    rows = KVEntry.objects.using(env.database).live().filter(namespace=env.name)
    return rows.filter(prefix_range("key", _prefix(skill))).count()


def move_stars(env: WorkerEnv, before: str, after: str) -> None:
    """Give the stars of the skill with the identity ``before`` to the one that it has now, in a transfer."""
    namespace, cursor = KVNamespace(KVEntry, env), None
    while True:
        page = namespace.list_sync(f"star:{before}:", cursor=cursor)
        for key in page.keys:
            namespace.put_sync(f"star:{after}:{key.name.rpartition(':')[2]}", {})
            namespace.delete_sync(key.name)
        if page.list_complete:
            return
        cursor = page.cursor


def _prefix(skill: SkillEntry) -> str:
    # The identity stays when a skill is renamed.
    return f"star:{skill.identity or skill.slug}:"


def _key(skill: SkillEntry, user: int) -> str:
    return f"{_prefix(skill)}{user}"
