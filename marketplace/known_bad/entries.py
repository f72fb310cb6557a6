"""The entries of known bad content: remembered with a reason, looked up by index, and forgotten again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from django.db.models import Q, QuerySet

from marketplace.errors import MarketplaceError
from marketplace.flags import FlagKind, clear, flag
from marketplace.judgement import Judgement, judge, verdict_of
from marketplace.likeness.known import find_equal
from marketplace.likeness.published import SimilarVersion, degree, same_content, similar_content
from marketplace.likeness.signature import Signature, pack, unpack
from marketplace.models import KnownBad, KnownBadShingle, SkillFlag, SkillVersion
from marketplace.skills.store import in_transaction, record_event
from vskill.environments import WorkerEnv
from vskill.hidden_characters import visible

_LONGEST_TEXT: Final = 500


class InvalidKnownBad(MarketplaceError):
    """Content cannot be remembered as it is given, or the reason is missing; nothing was written."""

    code = "invalid_known_bad"


@dataclass(frozen=True)
class BadContent:
    """Content that is known to be bad, as an operator or a list names it.

    ``content_hash`` may be empty where the signature is known, and the other way round. ``name`` is what findings call
    it, ``source`` says where it is known from, and ``found_on`` when it was found. ``publisher`` is who published or
    submitted it (``host/owner``), empty where nobody knows.
    """

    name: str
    reason: str
    content_hash: str = ""
    signature: Signature = field(default_factory=Signature)
    source: str = ""
    found_on: date | None = None
    publisher: str = ""


@dataclass(frozen=True)
class Remembered:
    """What came of an entry.

    ``created`` is false where it was known already. ``flagged`` are the published versions that were flagged for it.
    ``relatives`` are published versions of others that passed and are similar: because of them, the entry is compared
    for equality alone, since bad content is often an honest skill with a few lines more.
    """

    entry: KnownBad
    created: bool
    flagged: tuple[SkillVersion, ...] = ()
    relatives: tuple[SimilarVersion, ...] = ()


def remember(env: WorkerEnv, bad: BadContent, *, actor: str) -> Remembered:
    """Remember content as known bad, and flag what is published of it; again for one that is known changes its reason.

    ``actor`` goes into the entry and the history. Raises ``InvalidKnownBad`` without a reason, a name, or anything to
    recognise it by.
    """
    reason, name = (visible(" ".join(text.split()), _LONGEST_TEXT) for text in (bad.reason, bad.name))
    if not reason or not name:
        raise InvalidKnownBad("Give it a name and say why: submitters and holders read both. Nothing was remembered.")
    digest = bad.signature.normal_digest
    if not bad.content_hash and not digest:
        raise InvalidKnownBad("It has neither a content hash nor a normal digest. Nothing was remembered.")
    similar = similar_content(env, bad.signature.sketch)
    relatives = tuple(one for one in similar if _is_relative(one.version, bad))
    sketch = () if relatives else bad.signature.sketch

    def write() -> tuple[KnownBad, bool]:
        known = find_equal(env, bad.content_hash, digest)
        entry = known or KnownBad(namespace=env.name, content_hash=bad.content_hash or None, actor=actor)
        entry.name, entry.reason, entry.source = name[:200], reason, visible(bad.source, _LONGEST_TEXT)
        entry.found_on = bad.found_on or entry.found_on
        entry.content_hash = entry.content_hash or bad.content_hash or None
        entry.normal_digest = entry.normal_digest or digest or None
        entry.sketch = pack(sketch) if sketch else "" if relatives else entry.sketch
        entry.save(using=env.database)
        shingles = KnownBadShingle.objects.using(env.database)
        shingles.filter(entry=entry).delete()
        values = unpack(entry.sketch)
        shingles.bulk_create(KnownBadShingle(namespace=env.name, value=value, entry=entry) for value in values)
        record_event(env, _subject(entry), "known bad", actor=actor, reason=reason)
        return entry, known is None

    entry, created = in_transaction(env, write)
    flagged = _flag_published(env, entry, [one for one in similar if one not in relatives], actor)
    return Remembered(entry, created, tuple(flagged), relatives)


def _is_relative(version: SkillVersion, bad: BadContent) -> bool:
    """Return whether a similar version may be the honest skill that the bad content was made from."""
    same = bad.content_hash == version.content_hash or bad.signature.normal_digest == version.normal_digest
    if same or version.skill.publisher == bad.publisher:
        return False
    return judge(verdict_of(version), version.flag_reason) is Judgement.PASSED


def _flag_published(
    env: WorkerEnv, entry: KnownBad, similar: Iterable[SimilarVersion], actor: str
) -> list[SkillVersion]:
    equal = same_content(env, entry.content_hash or "", entry.normal_digest or "")
    for version in equal:
        said = f"Its content is known to be bad ({entry.name}): {entry.reason}"
        details = {"entry": entry.pk, "name": entry.name}
        flag(env, version.skill.slug, FlagKind.KNOWN_BAD, said, version=version.version, details=details, actor=actor)
    flagged = list(equal)
    for one in similar:
        if one.version.pk in {version.pk for version in equal}:
            continue
        share = degree(one.likeness)
        said = f"Its content is similar to known bad content ({entry.name}, {share:.0%}): {entry.reason}"
        details = {"entry": entry.pk, "name": entry.name, "likeness": round(share, 3)}
        slug, number = one.version.skill.slug, one.version.version
        flag(env, slug, FlagKind.SIMILAR, said, version=number, details=details, actor=actor)
        flagged.append(one.version)
    return flagged


def forget(env: WorkerEnv, entry_id: int, *, actor: str, reason: str) -> bool:
    """Forget an entry, take off the flags that came of it, and return whether there was one.

    ``actor`` and ``reason`` go into the history.
    """

    def delete() -> bool:
        entry = entries(env).filter(pk=entry_id).first()
        if entry is None:
            return False
        record_event(env, _subject(entry), "no longer known bad", actor=actor, reason=reason)
        entry.delete(using=env.database)
        return True

    deleted = in_transaction(env, delete)
    kinds = Q(kind=FlagKind.KNOWN_BAD) | Q(kind=FlagKind.SIMILAR)
    flags = SkillFlag.objects.using(env.database).filter(kinds, namespace=env.name).select_related("skill", "version")
    for one in flags.defer("version__skill_md", "version__findings", "version__manifest", "version__contract"):
        if one.details.get("entry") == entry_id:
            kind, number = FlagKind(one.kind), one.version.version
            clear(env, one.skill.slug, kind, version=number, actor=actor, reason=reason)
    return deleted


def entries(env: WorkerEnv) -> QuerySet[KnownBad]:
    """Return the entries of an environment, the newest first."""
    return KnownBad.objects.using(env.database).filter(namespace=env.name).order_by("-id")


def _subject(entry: KnownBad) -> str:
    return f"known_bad:{entry.content_hash or entry.normal_digest}"
