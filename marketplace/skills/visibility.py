"""The single rule for what is shown to whom, used by pages, API, search, indexes, archives, git and raw files.

What the sender of the current request may see is one set of words: what is public, and the audiences of
``vskill.accounts.audiences.seeing``. The column ``visibility`` has one of these words for each skill, so that every
list follows an index for each word, and a stranger's list costs what it did before there were audiences.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from django.db.models import Q, QuerySet

from marketplace.models import SkillEntry, SkillVersion
from marketplace.records import Visibility, shown_as
from vskill.accounts.audiences import MEMBERS, TEAM, seeing
from vskill.db import prepared_cursor
from vskill.environments import WorkerEnv

_WITHHELD: Final = (Visibility.QUARANTINED, Visibility.DELETED)
_SKILLS: Final = f'"{SkillEntry._meta.db_table}"'


class _Shown(Protocol):
    @property
    def slug(self) -> str: ...
    @property
    def shown_as(self) -> str: ...


def is_visible(skill: _Shown) -> bool:
    """Return whether a skill (an entry or a record) is shown at its own URL to whoever asks now."""
    return bool(skill.slug) and skill.shown_as in (Visibility.VISIBLE, *seeing())


def is_public(skill: _Shown) -> bool:
    """Return whether a skill (an entry or a record) is shown to everybody."""
    return bool(skill.slug) and skill.shown_as == Visibility.VISIBLE


def is_told(skill: SkillEntry) -> bool:
    """Return whether whoever asks now may know of a skill, be it withheld or not."""
    return skill.audience is not None and skill.audience in ("", *seeing())


def visible_skills(skills: QuerySet[SkillEntry]) -> QuerySet[SkillEntry]:
    """Return the skills that are shown at their own URLs to whoever asks now, without aliases."""
    return skills.filter(_among(_visible())).exclude(slug="")


def listed_skills(skills: QuerySet[SkillEntry], part: tuple[str, ...] = ()) -> QuerySet[SkillEntry]:
    """Return the skills that lists, search and indexes show: visible ones with a version that is not withdrawn.

    ``part`` is one of ``parts_of_lists``, by default all of them.
    """
    return skills.filter(_among(part or _visible())).exclude(slug="").exclude(latest_version="")


def parts_of_lists() -> list[tuple[str, ...]]:
    """Return the parts of what whoever asks now is shown, each of which an index has in the order of a list.

    It is one for a stranger, and three at most: what is public, what is for members, and what is for teams.
    """
    teams = tuple(one for one in seeing() if one.startswith(TEAM))
    others = ((one,) for one in seeing() if one not in teams)
    return [(Visibility.VISIBLE,), *others, *([teams] if teams else [])]


def public_skills(skills: QuerySet[SkillEntry]) -> QuerySet[SkillEntry]:
    """Return the listed skills that everybody sees."""
    return skills.filter(visibility=Visibility.VISIBLE).exclude(slug="").exclude(latest_version="")


def sees_more(env: WorkerEnv) -> bool:
    """Return whether whoever asks now is shown a skill that is not public; without an audience it costs nothing."""
    return bool(seeing()) and not words_in_use(env).isdisjoint(seeing())


def known_skills(skills: QuerySet[SkillEntry]) -> QuerySet[SkillEntry]:
    """Return the skills of which whoever asks now may know that they are or were there, with those that are withheld.

    For anybody else a skill is not there: not even as withheld.
    """
    return skills.filter(_among((*_visible(), *_withheld()))).exclude(slug="")


def hidden_skills(skills: QuerySet[SkillEntry]) -> QuerySet[SkillEntry]:
    """Return the skills of which whoever asks now may not know, in a form that finds those of an identity at once."""
    # A damaged value has no word, and aliases have none.
    return skills.exclude(visibility__in=("", *_visible(), *_withheld()))


def any_hidden(env: WorkerEnv) -> bool:
    """Return whether an environment has a skill of which whoever asks now may not know."""
    return not words_in_use(env) <= {"", *_visible(), *_withheld()}


def words_in_use(env: WorkerEnv) -> set[str]:
    """Return the words of ``records.shown_as`` that skills have: one statement, a look-up of an index for each word."""
    first = "SELECT visibility FROM {} WHERE namespace = %(namespace)s AND visibility {} ORDER BY visibility LIMIT 1"
    begin, following = (first.format(_SKILLS, behind) for behind in (">= ''", "> word.found"))
    text = (
        f"WITH RECURSIVE word(found) AS (SELECT ({begin}) UNION ALL "  # noqa: S608 - a query of our own
        f"SELECT ({following}) FROM word WHERE word.found IS NOT NULL) "
        "SELECT found FROM word WHERE found IS NOT NULL"
    )
    with prepared_cursor(env.database) as cursor:
        cursor.execute(text, {"namespace": env.name})
        return {str(found) for (found,) in cursor.fetchall()}


def withheld_skills(skills: QuerySet[SkillEntry]) -> QuerySet[SkillEntry]:
    """Return the skills that were shown and are withheld; of these, only that they are, and why, is told."""
    return skills.filter(_among(_withheld())).exclude(slug="")


def quarantined_skills(skills: QuerySet[SkillEntry]) -> QuerySet[SkillEntry]:
    """Return the skills that were shown to whoever asks now and are in quarantine."""
    return skills.filter(_among(tuple(shown_as(Visibility.QUARANTINED, one) for one in ("", *seeing()))))


def fetchable_versions(versions: QuerySet[SkillVersion]) -> QuerySet[SkillVersion]:
    """Return the versions whose files can be fetched by their exact number; that includes yanked ones."""
    return versions_of_shown(versions.filter(quarantined_at__isnull=True))


def versions_of_shown(versions: QuerySet[SkillVersion]) -> QuerySet[SkillVersion]:
    """Return the versions of skills that are shown to whoever asks now."""
    return versions.filter(_among(_visible(), "skill__visibility")).exclude(skill__slug="")


def versions_in_use(versions: QuerySet[SkillVersion]) -> QuerySet[SkillVersion]:
    """Return the versions that somebody can fetch, whoever that is: for what the registry does by itself."""
    column = "skill__visibility"
    teams = Q(**{f"{column}__startswith": TEAM})
    shown = Q(**{f"{column}__in": (Visibility.VISIBLE, MEMBERS)}) | teams
    return versions.filter(shown, quarantined_at__isnull=True).exclude(skill__slug="")


def light_versions(versions: QuerySet[SkillVersion]) -> QuerySet[SkillVersion]:
    """Return ``versions`` without their large columns, each of which is read when it is asked for."""
    return versions.defer("skill_md", "findings", "manifest", "contract")


def _visible() -> tuple[str, ...]:
    return (Visibility.VISIBLE, *seeing())


def _withheld() -> tuple[str, ...]:
    return tuple(shown_as(one, audience) for audience in ("", *seeing()) for one in _WITHHELD)


def _among(words: tuple[str, ...], column: str = "visibility") -> Q:
    # An equality where there is one word: what a stranger asks is written as it was.
    given: dict[str, Any] = {column: words[0]} if len(words) == 1 else {f"{column}__in": words}
    return Q(**given)
