"""Write feeds in Atom 1.0 (RFC 4287) from skills; what skills say of themselves is plain text in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

from django.utils.feedgenerator import Atom1Feed
from django.utils.html import escape

from marketplace.addresses import publisher_href, skill_href
from marketplace.judgement import warning
from marketplace.models import SkillEntry
from marketplace.pages.wording import FLAGGED, published_words
from marketplace.skills.recently_withdrawn import Withdrawal
from vskill.hidden_characters import visible

# RFC 4151: the host, as it was then. An id stays the same when a skill is renamed.
_SINCE: Final = "2026-01-01"
_LONGEST_TITLE: Final = 200
_LONGEST_SUMMARY: Final = 2_000
# A feed has a time even when nothing is in it, and then always the same one.
_NEVER: Final = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class About:
    """What a feed says of itself: its title, what is in it, its own address and that of the page that it follows.

    ``base`` is the address of the registry, without a slash at the end; the others are paths.
    """

    title: str
    subtitle: str
    base: str
    own_path: str
    page_path: str


@dataclass(frozen=True)
class Entry:
    """One entry of a feed: its title, the address of its page, a text, its time, and the end of its id."""

    title: str
    link: str
    text: str
    at: datetime
    id: str


class _Feed(Atom1Feed):
    """A feed whose time is that of its newest entry, and never that of the request: its bytes make its ETag."""

    def latest_post_date(self) -> datetime:
        times = [one["updateddate"] for one in self.items if one["updateddate"] is not None]
        return max(times, default=_NEVER)


def feed_of_skills(about: About, skills: Iterable[SkillEntry], *, by_change: bool) -> str:
    """Return a feed of skills as XML; the time of an entry is that of the last change, or of the first publication."""
    feed = _begin(about)
    for skill in skills:
        at = skill.changed_at if by_change else skill.published_at
        words = FLAGGED if skill.flag_reason else published_words(skill.verdict)
        said = (warning(skill.verdict, skill.flag_reason), skill.description, f"Version {skill.latest_version}.")
        feed.add_item(
            title=visible(f"{skill.display_name or skill.name} {skill.latest_version}: {words.label}", _LONGEST_TITLE),
            link=about.base + skill_href(skill.slug),
            description=_html(" ".join(part for part in said if part)),
            author_name=visible(skill.publisher_handle, _LONGEST_TITLE) or "unknown",
            author_link=about.base + publisher_href(skill.publisher_handle) if skill.publisher_handle else None,
            pubdate=skill.published_at,
            updateddate=at or _NEVER,
            unique_id=_id(about, "skill", skill),
        )
    return str(feed.writeString("utf-8"))


def feed_of_withdrawals(about: About, withdrawals: Iterable[Withdrawal]) -> str:
    """Return a feed of what was withdrawn as XML: names and reasons, and nothing of the author's."""
    feed = _begin(about)
    for one in withdrawals:
        what = f"{one.skill.slug} {one.version}".strip()
        feed.add_item(
            title=f"Withdrawn: {visible(what, _LONGEST_TITLE)}",
            link=about.base + skill_href(one.skill.slug),
            description=_html(one.sentence),
            updateddate=one.at,
            unique_id=_id(about, "withdrawn", one.skill) + (f"/{visible(one.version, 64)}" if one.version else ""),
        )
    return str(feed.writeString("utf-8"))


def feed_of_entries(about: About, entries: Iterable[Entry]) -> str:
    """Return a feed of any entries as XML; whatever they say is plain text in it."""
    feed = _begin(about)
    for one in entries:
        feed.add_item(
            title=visible(one.title, _LONGEST_TITLE),
            link=one.link,
            description=_html(one.text),
            updateddate=one.at,
            unique_id=f"tag:{_host(about)},{_SINCE}:{one.id}",
        )
    return str(feed.writeString("utf-8"))


def _begin(about: About) -> _Feed:
    return _Feed(
        title=visible(about.title, _LONGEST_TITLE),
        link=about.base + about.page_path,
        description=None,
        subtitle=visible(about.subtitle, _LONGEST_SUMMARY),
        language="en",
        # Entries without an author have that of the feed.
        author_name="vskill",
        feed_url=about.base + about.own_path,
        feed_guid=about.base + about.own_path,
    )


def _id(about: About, kind: str, skill: SkillEntry) -> str:
    return f"tag:{_host(about)},{_SINCE}:{kind}/{skill.identity or skill.slug}"


def _host(about: About) -> str:
    return (urlsplit(about.base).hostname or "localhost").lower()


def _html(text: str) -> str:
    # Readers take a summary for HTML.
    return str(escape(visible(" ".join(text.split()), _LONGEST_SUMMARY)))
