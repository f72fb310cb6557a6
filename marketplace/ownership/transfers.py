"""Transfers: a skill is handed from one publisher to another, and can be handed back.

The skill keeps its slug, versions and downloads. From then on it is listed under the publisher that received it, and
updates come from a repository of that one: the same folder of a repository of the same name, unless another is named.
Under the name of the former publisher it is found as before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from marketplace.models import SkillEntry, SkillTransfer, SkillVersion
from marketplace.models.ownership import DECLINED, DONE, LAPSED, OFFERED, UNDONE, WITHDRAWN
from marketplace.ownership.rights import is_closed
from marketplace.records import SkillRecord
from marketplace.skills.blocklist import is_blocked
from marketplace.skills.latest import kept_versions
from marketplace.skills.publishers import (
    ACCOUNTS,
    is_uploaded,
    normalised_repository,
    owner_identity,
    publisher_of,
    skill_identity,
)
from marketplace.skills.reservations import why_reserved
from marketplace.skills.store import Event, in_transaction, locked_skill, record_event, skills_of_identity, update_skill
from marketplace.skills.visibility import light_versions
from marketplace.skills.withdrawal import withheld
from marketplace.stars import move_stars
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.hidden_characters import reveal_hidden
from vskill.kv.clock import database_now
from vskill.kv.codec import storable

OFFER_DAYS: Final = 30
_LONGEST_REASON: Final = 1000


class TransferRefused(VskillError):
    """A skill cannot be handed over like this; nothing was changed."""

    code = "transfer_refused"


def home_below(record: SkillRecord, owner: str) -> str:
    """Return the address of the repository of a skill's name below another owner, written as ``host/owner``.

    Raises ``TransferRefused`` for an account that uploads, which has no repositories, and for what is no owner.
    """
    identity = owner_identity(owner)
    host, _, path = identity.partition("/")
    if not path or host == "account":
        raise TransferRefused(
            f"{owner!r} is no host/owner that has repositories, such as github.com/acme. Nothing was handed over."
        )
    parts = urlsplit(record.repo_url)
    repository = record.slug if is_uploaded(record.repo_url) else parts.path.rpartition("/")[2]
    if host == "local":
        above = parts.path.rpartition("/")[0].rpartition("/")[0] if parts.scheme == "file" else ""
        return normalised_repository(f"file://{above}/{path}/{repository}")
    return normalised_repository(urlunsplit(("https", host, f"/{path}/{repository}", "", "")))


def transfers_of(env: WorkerEnv) -> QuerySet[SkillTransfer]:
    """Return the transfers of an environment with their skills, the newest first."""
    rows = SkillTransfer.objects.using(env.database).filter(namespace=env.name)
    return rows.select_related("skill").order_by("-pk")


def open_offers(env: WorkerEnv) -> QuerySet[SkillTransfer]:
    """Return the offers that can still be accepted, the newest first."""
    since = database_now(env.database) - timedelta(days=OFFER_DAYS)
    return transfers_of(env).filter(state=OFFERED, created_at__gt=since)


def open_until(offered: SkillTransfer) -> datetime:
    """Return the time until which an offer can be accepted."""
    return offered.created_at + timedelta(days=OFFER_DAYS)


def offer(
    env: WorkerEnv, slug: str, repo_url: str, *, path: str | None = None, actor: str, reason: str
) -> SkillTransfer:
    """Offer a skill to the publisher of another repository, whose owner accepts it or not, and return the offer.

    ``repo_url`` is a normalised address, and ``path`` the folder there, by default the one that the skill is in.
    ``actor``, who may act for its publisher, and ``reason`` are kept. Raises ``SkillNotFound``, and ``TransferRefused``
    where it could not be handed over, is withheld, or is offered already.
    """

    def make() -> SkillTransfer:
        row = locked_skill(env, slug)
        _refuse_withheld(row)
        made = _planned(env, row, repo_url, path, actor, reason)
        of_skill = transfers_of(env).filter(skill=row, state=OFFERED).order_by()
        of_skill.exclude(pk__in=open_offers(env).filter(skill=row).order_by().values("pk")).update(state=LAPSED)
        try:
            with transaction.atomic(using=env.database):
                made.save(using=env.database, force_insert=True)
        except IntegrityError:
            raise TransferRefused(f"{slug} is offered to a publisher already. Withdraw that offer first.") from None
        _note(env, made, "transfer offered", actor, made.reason)
        return made

    return in_transaction(env, make)


def hand_over(
    env: WorkerEnv, slug: str, repo_url: str, *, path: str | None = None, actor: str, reason: str
) -> SkillTransfer:
    """Hand a skill to the publisher of another repository at once, because an operator says so; return the transfer.

    ``repo_url``, ``path``, ``actor``, ``reason`` and what is raised are those of ``offer``. An open offer of the skill
    ends.
    """

    def move() -> SkillTransfer:
        row = locked_skill(env, slug)
        made = _planned(env, row, repo_url, path, actor, reason)
        now = database_now(env.database)
        open_ones = transfers_of(env).filter(skill=row, state=OFFERED).order_by()
        open_ones.update(state=WITHDRAWN, decided_by=actor[:150], decided_at=now)
        made.state, made.decided_by, made.decided_at = DONE, actor[:150], now
        made.save(using=env.database, force_insert=True)
        _move(env, row, made.to_repo_url, made.to_skill_path, actor, made.reason)
        return made

    return in_transaction(env, move)


def accept(env: WorkerEnv, number: int, *, actor: str) -> SkillTransfer:
    """Accept an offer, by its number, for the publisher that it was made to, and return the transfer that is done.

    ``actor`` may act for that publisher. Raises ``TransferRefused`` where it is not open, or can no longer be done.
    """

    def move() -> SkillTransfer:
        offered = _open(env, number)
        row = locked_skill(env, offered.skill.slug)
        if row.record.identity != skill_identity(offered.from_repo_url, offered.from_skill_path):
            raise TransferRefused("The skill has changed hands or moved since it was offered. Nothing was changed.")
        _refuse_withheld(row)
        if is_closed(env, username=offered.offered_by):
            raise TransferRefused(f"The account that offered {row.slug} is closed here. Nothing was changed.")
        _refuse_home(env, row.record, offered.to_repo_url, offered.to_skill_path)
        _decide(env, offered, DONE, actor)
        _move(env, row, offered.to_repo_url, offered.to_skill_path, actor, offered.reason)
        return offered

    return in_transaction(env, move)


def refuse(env: WorkerEnv, number: int, *, actor: str, by_receiver: bool) -> SkillTransfer:
    """Decline an offer, by its number, for the receiver, or else withdraw it for the giver, and return it.

    ``actor`` may act for that publisher. Raises ``TransferRefused`` where it is no longer open.
    """

    def end() -> SkillTransfer:
        offered = _open(env, number)
        _decide(env, offered, DECLINED if by_receiver else WITHDRAWN, actor)
        _note(env, offered, "transfer declined" if by_receiver else "transfer withdrawn", actor, "")
        return offered

    return in_transaction(env, end)


def undo(env: WorkerEnv, number: int, *, actor: str, reason: str) -> SkillTransfer:
    """Hand a skill back to whom it was of before a transfer, by its number, and return that transfer.

    ``actor``, an operator, and ``reason`` are kept. Raises ``TransferRefused`` where it was not the last transfer of
    the skill, or where another skill was published from the former place meanwhile.
    """

    def back() -> SkillTransfer:
        last = transfers_of(env).filter(pk=number, state=DONE).first()
        if last is None:
            raise TransferRefused(f"There is no transfer {number} that is done. Nothing was changed.")
        row = locked_skill(env, last.skill.slug)
        if row.record.identity != skill_identity(last.to_repo_url, last.to_skill_path):
            raise TransferRefused(f"{row.slug} has changed hands or moved since. Undo that first. Nothing was changed.")
        _refuse_place(env, row.record, last.from_repo_url, last.from_skill_path)
        _decide(env, last, UNDONE, actor)
        _move(env, row, last.from_repo_url, last.from_skill_path, actor, f"undone: {reason}")
        return last

    return in_transaction(env, back)


def skills_of_publisher(env: WorkerEnv, handle: str) -> Sequence[str]:
    """Return the slugs of all skills that are listed under a handle or withheld from it, by the time of their rows."""
    rows = SkillEntry.objects.using(env.database).filter(namespace=env.name, publisher_handle=handle)
    return list(rows.order_by("pk").values_list("slug", flat=True))


def _planned(
    env: WorkerEnv, row: SkillEntry, repo_url: str, path: str | None, actor: str, reason: str
) -> SkillTransfer:
    record = row.record
    folder = record.skill_path if path is None else path
    _refuse_home(env, record, repo_url, folder)
    giver, receiver = publisher_of(record.repo_url), publisher_of(repo_url)
    return SkillTransfer(
        namespace=env.name,
        skill=row,
        from_publisher=record.publisher or giver.identity,
        from_handle=record.publisher_handle,
        from_repo_url=record.repo_url,
        from_skill_path=record.skill_path,
        to_publisher=receiver.identity,
        to_handle=receiver.handle,
        to_repo_url=repo_url,
        to_skill_path=folder,
        # The other side reads it, on a page or in a terminal.
        reason=reveal_hidden(storable(reason))[:_LONGEST_REASON],
        offered_by=actor[:150],
    )


def _refuse_withheld(row: SkillEntry) -> None:
    # Its former repository would be a stranger to it, from which it could be published anew.
    if reason := withheld(row):
        raise TransferRefused(f"{reason} Nothing was handed over. Bring it back first, or ask an operator.")


def _refuse_home(env: WorkerEnv, record: SkillRecord, repo_url: str, path: str) -> None:
    if publisher_of(repo_url).identity == record.publisher:
        raise TransferRefused(f"{record.slug} is of {record.publisher} already. Nothing was handed over.")
    if repo_url.startswith(ACCOUNTS) or (is_uploaded(repo_url) and not is_uploaded(record.repo_url)):
        raise TransferRefused("Who uploads has no repository that could receive a skill. Nothing was handed over.")
    if reason := why_reserved(env, repo_url, record.name):
        raise TransferRefused(f"{reason} Nothing was handed over.")
    _refuse_place(env, record, repo_url, path)


def _refuse_place(env: WorkerEnv, record: SkillRecord, repo_url: str, path: str) -> None:
    if (block := is_blocked(env, repo_url)) is not None:
        raise TransferRefused(f"{repo_url} is on the block list: {block.reason}. {record.slug} was left as it was.")
    if (other := skills_of_identity(env, skill_identity(repo_url, path)).first()) is not None:
        raise TransferRefused(
            f"{other.slug} is published from {path or 'the root'} of {repo_url} already, so {record.slug} cannot come "
            "from there. Nothing was handed over. Name another folder, or delete that skill."
        )


def _move(env: WorkerEnv, row: SkillEntry, repo_url: str, path: str, actor: str, reason: str) -> None:
    """Give the skill in ``row``, which is locked, another home, with a line in the history and in the log."""
    record, receiver = row.record, publisher_of(repo_url)
    versions = SkillVersion.objects.using(env.database).filter(skill=row)
    # Where the files of a version were is said of the version, once the skill is somewhere else.
    versions.filter(skill_path=None).update(skill_path=record.skill_path)
    versions.filter(repo_url="").update(repo_url=record.repo_url)
    kept = kept_versions(light_versions(versions))
    moved = replace(
        record,
        publisher=receiver.identity,
        publisher_handle=receiver.handle,
        repo_url=repo_url,
        skill_path=path,
        identity=skill_identity(repo_url, path),
        also_at=(),
        source_gone_at="",
        source_gone_commit="",
    )
    said = f"from @{record.publisher_handle} ({record.repo_url}) to @{receiver.handle} ({repo_url}): {reason}"
    update_skill(env, row, moved, Event("transferred", actor[:150], said), kept=(kept, kept))
    move_stars(env, record.identity or record.slug, moved.identity)


def _open(env: WorkerEnv, number: int) -> SkillTransfer:
    found = open_offers(env).filter(pk=number).first()
    if found is None:
        raise TransferRefused("This offer is not open any more. Nothing was changed.")
    return found


def _decide(env: WorkerEnv, row: SkillTransfer, state: str, actor: str) -> None:
    changed = transfers_of(env).filter(pk=row.pk, state=row.state).order_by()
    if not changed.update(state=state, decided_by=actor[:150], decided_at=database_now(env.database)):
        raise TransferRefused("Somebody else decided about this at this moment. Nothing was changed.")
    row.state = state


def _note(env: WorkerEnv, row: SkillTransfer, action: str, actor: str, reason: str) -> None:
    said = f"@{row.from_handle} to @{row.to_handle}: {reason}"
    record_event(env, row.skill.key, action, actor=actor[:150], reason=said, row=row.skill)
