"""Withdraw what is published and bring it back: its publisher may, and operators may."""

from __future__ import annotations

from typing import Final

from marketplace.errors import SkillNotFound
from marketplace.models import HistoryEvent, SkillEntry, SkillVersion
from marketplace.records import Visibility
from marketplace.skills.moderation import delete_skill, restore, unyank, withdraw_by_publisher, yank_version
from marketplace.skills.store import in_transaction, locked_skill
from marketplace.skills.withdrawal import withheld
from submissions.uploads.acting import Acting, may_change
from submissions.uploads.errors import UploadRefused
from vskill.environments import WorkerEnv
from vskill.hidden_characters import reveal_hidden
from vskill.kv.codec import storable

_LONGEST_REASON: Final = 500
_UNCHANGED: Final = "Nothing was changed."


def withdraw(env: WorkerEnv, acting: Acting, slug: str, version: str = "", *, reason: str = "") -> None:
    """Withdraw a skill for whoever is ``acting``, or one ``version`` of it; doing it twice changes nothing.

    An operator withdraws also what its publisher has withdrawn, who then can no longer bring it back.
    Its history and its files are kept, and nobody else gets its slug or its number. Raises ``UploadRefused``.
    """
    said = _said(reason, "Its publisher withdrew it.")

    def work() -> None:
        row = _row_of(env, acting, slug)
        if version:
            if _version(env, row, version).yanked_at is None or _is_over(env, acting, row, version):
                _withdraw(env, acting, slug, version, said)
        elif row.standing == Visibility.VISIBLE or (
            row.standing == Visibility.DELETED and _is_over(env, acting, row, version)
        ):
            _withdraw(env, acting, slug, version, said)
        elif row.standing == Visibility.QUARANTINED:
            raise UploadRefused(409, f"{withheld(row)} {_UNCHANGED}")

    in_transaction(env, work)


def bring_back(env: WorkerEnv, acting: Acting, slug: str, version: str = "", *, reason: str = "") -> None:
    """Undo the withdrawal of a skill, or of one ``version``, for whoever is ``acting``.

    A publisher brings back only what its publisher has withdrawn. ``reason`` goes into the history. Raises
    ``UploadRefused``.
    """
    said = _said(reason, "Its publisher brought it back.")

    def work() -> None:
        row = _row_of(env, acting, slug)
        is_withdrawn = (
            _version(env, row, version).yanked_at is not None if version else row.standing != Visibility.VISIBLE
        )
        if not is_withdrawn:
            return
        if not may_bring_back(env, acting, row, version):
            raise UploadRefused(
                403, f"Operators of this registry withdrew it, so they alone bring it back. Ask them. {_UNCHANGED}"
            )
        if version:
            unyank(env, slug, version, actor=acting.name, reason=said)
        else:
            restore(env, slug, actor=acting.name, reason=said)

    in_transaction(env, work)


def may_bring_back(env: WorkerEnv, acting: Acting, skill: SkillEntry, version: str = "") -> bool:
    """Return whether somebody may bring back a skill that is withdrawn, or a ``version``, and may change it.

    What operators withdrew, operators alone bring back.
    """
    if acting.operates:
        return True
    last = _last_withdrawal(env, skill, version)
    if last is None:
        return False
    # Of events from before this was kept, the name of the account tells.
    return last.actor == acting.name if last.by_publisher is None else last.by_publisher


def _said(reason: str, otherwise: str) -> str:
    # An owner writes it, and operators read it in a terminal too; PostgreSQL keeps no text with a NUL.
    return reveal_hidden(storable(reason)).strip()[:_LONGEST_REASON] or otherwise


def _withdraw(env: WorkerEnv, acting: Acting, slug: str, version: str, reason: str) -> None:
    if not acting.operates:
        withdraw_by_publisher(env, slug, version, actor=acting.name, reason=reason)
    elif version:
        yank_version(env, slug, version, actor=acting.name, reason=reason)
    else:
        delete_skill(env, slug, actor=acting.name, reason=reason)


def _is_over(env: WorkerEnv, acting: Acting, row: SkillEntry, version: str) -> bool:
    """Return whether an operator withdraws what its publisher has withdrawn already."""
    last = _last_withdrawal(env, row, version)
    if not acting.operates or last is None:
        return False
    return last.actor != acting.name if last.by_publisher is None else last.by_publisher


def _last_withdrawal(env: WorkerEnv, row: SkillEntry, version: str) -> HistoryEvent | None:
    actions = ("yanked",) if version else ("deleted", "quarantined")
    events = HistoryEvent.objects.using(env.database).filter(
        namespace=env.name, skill=row, action__in=actions, version=version
    )
    return events.order_by("-pk").first()


def _row_of(env: WorkerEnv, acting: Acting, slug: str) -> SkillEntry:
    """Return the row of a skill that whoever is acting may withdraw, locked."""
    try:
        row = locked_skill(env, slug)
    except SkillNotFound:
        raise UploadRefused(404, "Skill not found") from None
    if not may_change(env, acting, row):
        raise UploadRefused(
            403,
            f"{slug} is withdrawn and brought back by the account that uploads it or has claimed its publisher, with a "
            f"token for publish, or by an operator, with one for operate. {_UNCHANGED}",
        )
    return row


def _version(env: WorkerEnv, row: SkillEntry, version: str) -> SkillVersion:
    rows = SkillVersion.objects.using(env.database).filter(namespace=env.name, skill=row)
    found = rows.filter(version=storable(version)).first()
    if found is None:
        raise UploadRefused(404, "Version not found")
    return found
