"""The admin of the marketplace: a module for each thing that operators look after."""

from __future__ import annotations

from marketplace.admin.blocks import BlockAdmin
from marketplace.admin.claims import ClaimAdmin
from marketplace.admin.flags import FlagAdmin
from marketplace.admin.known_bad import KnownBadAdmin
from marketplace.admin.references import ReferenceAdmin
from marketplace.admin.reports import ReportAdmin
from marketplace.admin.skills import HistoryAdmin, SkillAdmin
from marketplace.admin.transfers import TransferAdmin
from marketplace.skill_sets.admin import CollectionAdmin

__all__ = [
    "BlockAdmin",
    "ClaimAdmin",
    "CollectionAdmin",
    "FlagAdmin",
    "HistoryAdmin",
    "KnownBadAdmin",
    "ReferenceAdmin",
    "ReportAdmin",
    "SkillAdmin",
    "TransferAdmin",
]
