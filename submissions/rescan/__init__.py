"""Scan what is published again, when engines or rules are newer than its last scan."""

from __future__ import annotations
