"""The tables of the marketplace; every model stands here by its name."""

from __future__ import annotations

from marketplace.models.archives import ArchiveBlob
from marketplace.models.collections import Collection, CollectionSkill
from marketplace.models.derived import DownloadDay, SearchDocument, SearchToken, SkillFacet, WordSpelling
from marketplace.models.flags import LaterScan, PastScan, SkillFlag
from marketplace.models.following import FollowedEntry
from marketplace.models.history import HistoryEvent
from marketplace.models.known_bad import KnownBad, KnownBadShingle, VersionShingle
from marketplace.models.ownership import PublisherClaim, SkillTransfer
from marketplace.models.provenance import LogLeaf, LogNode, LogPending, LogState, SigningKey, TreeHead, VersionSignature
from marketplace.models.references import ReferenceEntry
from marketplace.models.reports import VisitorReport
from marketplace.models.skills import ALIAS_PREFIX, SKILL_PREFIX, BlockEntry, SkillEntry, SkillVersion

__all__ = [
    "ALIAS_PREFIX",
    "SKILL_PREFIX",
    "ArchiveBlob",
    "BlockEntry",
    "Collection",
    "CollectionSkill",
    "DownloadDay",
    "FollowedEntry",
    "HistoryEvent",
    "KnownBad",
    "KnownBadShingle",
    "LaterScan",
    "LogLeaf",
    "LogNode",
    "LogPending",
    "LogState",
    "PastScan",
    "PublisherClaim",
    "ReferenceEntry",
    "SearchDocument",
    "SearchToken",
    "SigningKey",
    "SkillEntry",
    "SkillFacet",
    "SkillFlag",
    "SkillTransfer",
    "SkillVersion",
    "TreeHead",
    "VersionShingle",
    "VersionSignature",
    "VisitorReport",
    "WordSpelling",
]
