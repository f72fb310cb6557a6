"""Keep published skills in step with their repository: a skill that is gone from it, back in it, or in another folder.

What is published stays as it is. A skill whose folder is gone says so; one whose folder was renamed keeps its slug and
its versions.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from marketplace.errors import MalformedRecord, SkillNotFound
from marketplace.models import SkillEntry
from marketplace.skills.publishers import publisher_of, skill_identity
from marketplace.skills.store import Event, in_transaction, locked_skill, update_skill
from vskill.environments import WorkerEnv
from vskill.kv.clock import parse_isoformat

ACTOR = "source"


def note_source(env: WorkerEnv, repo_url: str, paths: Collection[str], *, commit_sha: str, listed_at: str) -> int:
    """Mark the skills of a repository whose folder is gone, take the mark off those that are back, and count both.

    ``paths`` are the folders of all skills in the default branch at ``commit_sha``, and ``listed_at`` is an ISO text of
    the database's clock from before they were listed: what was published or changed since then is left alone.
    """
    identities = {skill_identity(repo_url, path) for path in paths}
    moment = parse_isoformat(listed_at)
    rows = SkillEntry.objects.using(env.database).live().filter(namespace=env.name)
    rows = rows.filter(publisher_handle=publisher_of(repo_url).handle)
    columns = rows.values_list("pk", "identity", "skill_path", "changed_at")
    own = [
        (pk, identity in identities)
        for pk, identity, path, changed_at in columns
        if identity == skill_identity(repo_url, path) and moment and changed_at and changed_at < moment
    ]
    return sum(_note(env, pk, "" if present else commit_sha) for pk, present in own)


def _note(env: WorkerEnv, pk: int, missing: str) -> bool:
    def write() -> bool:
        seen = SkillEntry.objects.using(env.database).filter(pk=pk).first()
        if seen is None or bool(seen.record.source_missing) is bool(missing):
            return False
        row = locked_skill(env, seen.slug)
        word, reason = ("source gone", f"not in commit {missing[:12]}") if missing else ("source back", "")
        update_skill(env, row, replace(row.record, source_missing=missing), Event(word, ACTOR, reason))
        return True

    try:
        return in_transaction(env, write)
    except (MalformedRecord, SkillNotFound, ValueError):
        # Damaged or deleted meanwhile; ``verify_store`` names what is damaged.
        return False


def adopt_moved_skill(env: WorkerEnv, repo_url: str, path: str, name: str, *, actor: str) -> bool:
    """Give the folder ``path`` to the skill of this ``name`` that has lost its own, and return whether there is one.

    It has to be of the repository ``repo_url``, and clear which one is meant. ``actor`` goes into the history. Call it
    in the transaction of the publication.
    """
    rows = SkillEntry.objects.using(env.database).live().filter(namespace=env.name, name=name)
    found = []
    for row in rows.filter(publisher_handle=publisher_of(repo_url).handle):
        try:
            gone = bool(row.record.source_missing)
        except (MalformedRecord, ValueError):
            continue
        if gone and row.identity == skill_identity(repo_url, row.skill_path):
            found.append(row)
    if len(found) != 1:
        return False
    row = locked_skill(env, found[0].slug)
    moved = replace(
        row.record, identity=skill_identity(repo_url, path), repo_url=repo_url, skill_path=path, source_missing=""
    )
    update_skill(env, row, moved, Event("moved", actor, f"from {row.skill_path or 'the root'}"))
    return True
