"""The errors of the marketplace.

MarketplaceError
├── MalformedRecord      an entry's value is not a published skill
├── PublicationMismatch  the files are not what was verified
├── PublicationBlocked   its repository, owner or content is on the block list
├── PublicationConflict  other writers were first, again and again
├── ArchiveError         an archive cannot be built, or is not one of ours
├── SkillNotFound        there is no such skill or version
├── SlugTaken            a name belongs to another skill
└── InvalidListing       a filter, order or cursor that no list has
"""

from __future__ import annotations

from vskill.errors import VskillError


class MarketplaceError(VskillError):
    """Base of the errors of the marketplace."""

    code = "marketplace_error"


class MalformedRecord(MarketplaceError):
    """The value of an entry lacks what a published skill has."""

    code = "malformed_record"


class PublicationMismatch(MarketplaceError):
    """The files on disk are not the ones that were verified; nothing was published."""

    code = "publication_mismatch"


class PublicationBlocked(MarketplaceError):
    """The repository, its owner or the content is on the block list; nothing was published."""

    code = "publication_blocked"


class PublicationConflict(MarketplaceError):
    """Other writers were first at every attempt; nothing was published and it may be tried again."""

    code = "publication_conflict"


class ArchiveError(MarketplaceError):
    """A set of files cannot be put into an archive that every client can read."""

    code = "archive_error"


class SkillNotFound(MarketplaceError):
    """There is no skill or version of that name."""

    code = "skill_not_found"


class SlugTaken(MarketplaceError):
    """A name is held by another skill, or is reserved; nothing was renamed."""

    code = "slug_taken"


class InvalidListing(MarketplaceError):
    """A list was asked for with an order or cursor that it does not have."""

    code = "invalid_listing"
