"""Withdraw what was uploaded and bring it back: its publisher may, and operators may."""

from __future__ import annotations

from typing import Final

from marketplace.errors import SkillNotFound
from marketplace.models import HistoryEvent, SkillEntry, SkillVersion
from marketplace.records import Visibility
from marketplace.skills.moderation import delete_skill, restore, unyank, yank_version
from marketplace.skills.store import in_transaction, locked_skill
from marketplace.skills.withdrawal import withheld
from submissions.uploads.errors import UploadRefused
from submissions.uploads.owners import may_change, operates
from vskill.access_tokens.models import AccessToken
from vskill.environments import WorkerEnv

_LONGEST_REASON: Final = 500
_UNCHANGED: Final = "Nothing was changed."
_WITHDRAWALS: Final = ("deleted", "quarantined")


def withdraw(env: WorkerEnv, token: AccessToken, slug: str, version: str = "", *, reason: str = "") -> None:
    """Withdraw a skill for the owner of ``token``, or one ``version`` of it; doing it twice changes nothing.

    An operator withdraws also what somebody else has withdrawn, who then can no longer bring it back.
    Its history and its files are kept, and nobody else gets its slug or its number. Raises ``UploadRefused``.
    """
    said = reason.strip()[:_LONGEST_REASON] or "Its publisher withdrew it."

    def work() -> None:
        row, actor = _row_of(env, token, slug), token.user.get_username()
        if version:
            if _version(env, row, version).yanked_at is None or _is_over(env, token, row, ("yanked",), version):
                yank_version(env, slug, version, actor=actor, reason=said)
        elif row.standing == Visibility.VISIBLE or (
            row.standing == Visibility.DELETED and _is_over(env, token, row, _WITHDRAWALS)
        ):
            delete_skill(env, slug, actor=actor, reason=said)
        elif row.standing == Visibility.QUARANTINED:
            raise UploadRefused(409, f"{withheld(row)} {_UNCHANGED}")

    in_transaction(env, work)


def bring_back(env: WorkerEnv, token: AccessToken, slug: str, version: str = "", *, reason: str = "") -> None:
    """Undo the withdrawal of a skill, or of one ``version``, for the owner of ``token``.

    A publisher brings back only what it has withdrawn itself. ``reason`` goes into the history. Raises
    ``UploadRefused``.
    """
    said = reason.strip()[:_LONGEST_REASON] or "Its publisher brought it back."

    def work() -> None:
        row, actor = _row_of(env, token, slug), token.user.get_username()
        if version:
            if _version(env, row, version).yanked_at is not None:
                _refuse_what_others_did(env, token, row, ("yanked",), version)
                unyank(env, slug, version, actor=actor, reason=said)
        elif row.standing != Visibility.VISIBLE:
            _refuse_what_others_did(env, token, row, _WITHDRAWALS)
            restore(env, slug, actor=actor, reason=said)

    in_transaction(env, work)


def _row_of(env: WorkerEnv, token: AccessToken, slug: str) -> SkillEntry:
    """Return the row of a skill that the owner of ``token`` may withdraw, locked."""
    try:
        row = locked_skill(env, slug)
    except SkillNotFound:
        raise UploadRefused(404, "Skill not found") from None
    if not may_change(env, token, row):
        raise UploadRefused(
            403,
            f"{slug} is withdrawn and brought back by the account that uploads it or has claimed its publisher, with a "
            f"token for publish, or by an operator, with one for operate. {_UNCHANGED}",
        )
    return row


def _version(env: WorkerEnv, row: SkillEntry, version: str) -> SkillVersion:
    found = SkillVersion.objects.using(env.database).filter(namespace=env.name, skill=row, version=version).first()
    if found is None:
        raise UploadRefused(404, "Version not found")
    return found


def _refuse_what_others_did(
    env: WorkerEnv, token: AccessToken, row: SkillEntry, actions: tuple[str, ...], version: str = ""
) -> None:
    if operates(env, token):
        return
    if _last_to_withdraw(env, row, actions, version) != token.user.get_username():
        raise UploadRefused(
            403, f"Operators of this registry withdrew it, so they alone bring it back. Ask them. {_UNCHANGED}"
        )


def _is_over(env: WorkerEnv, token: AccessToken, row: SkillEntry, actions: tuple[str, ...], version: str = "") -> bool:
    """Return whether an operator withdraws what somebody else has withdrawn already."""
    return operates(env, token) and _last_to_withdraw(env, row, actions, version) != token.user.get_username()


def _last_to_withdraw(env: WorkerEnv, row: SkillEntry, actions: tuple[str, ...], version: str) -> str | None:
    events = HistoryEvent.objects.using(env.database).filter(
        namespace=env.name, skill=row, action__in=actions, version=version
    )
    actor: str | None = events.order_by("-pk").values_list("actor", flat=True).first()
    return actor
