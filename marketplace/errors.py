"""The errors of the marketplace.

MarketplaceError
├── MalformedRecord      an entry's value is not a published skill
├── PublicationMismatch  the files are not the ones that were verified
├── PublicationBlocked   the repository, owner or content is on the block list, or others would see it
│   └── NameReserved     the name is reserved for another owner
├── PublicationConflict  other writers won every race
├── ArchiveError         an archive cannot be built, or lacks a file
├── SkillNotFound        there is no such skill or version
├── SlugTaken            another skill has the slug
├── SigningKeyError      the file with the signing keys cannot be used
├── BadSignature         something is not signed by the key that it names
├── InvalidLines         lines that no file has, or not this one
└── InvalidListing       a sort order or cursor that the list does not have
"""

from __future__ import annotations

from vskill.errors import VskillError


class MarketplaceError(VskillError):
    """Base of the errors of the marketplace."""

    code = "marketplace_error"


class MalformedRecord(MarketplaceError):
    """The value of an entry is not a published skill."""

    code = "malformed_record"


class PublicationMismatch(MarketplaceError):
    """Files on disk are not the ones that were verified; nothing was published."""

    code = "publication_mismatch"


class PublicationBlocked(MarketplaceError):
    """The repository, its owner or the content is on the block list, or others would see it; nothing was published."""

    code = "publication_blocked"


class NameReserved(PublicationBlocked):
    """The name of the skill, or of its publisher, is reserved for another owner; nothing was published."""

    code = "name_reserved"


class PublicationConflict(MarketplaceError):
    """Other writers won the race at every attempt; nothing was published, and a retry is safe."""

    code = "publication_conflict"


class ArchiveError(MarketplaceError):
    """Files cannot be put into an archive that every client can read, or an archive lacks a file."""

    code = "archive_error"


class SkillNotFound(MarketplaceError):
    """There is no such skill or version."""

    code = "skill_not_found"


class SlugTaken(MarketplaceError):
    """Another skill has or had the slug, or the slug rule forbids it; nothing was renamed."""

    code = "slug_taken"


class InvalidLines(MarketplaceError):
    """Lines of a file were requested that no file has, or not this one."""

    code = "invalid_lines"


class InvalidListing(MarketplaceError):
    """A list was requested with a sort order or cursor that it does not have."""

    code = "invalid_listing"
