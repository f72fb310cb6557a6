"""Check skills: read their packages, run engines on them, and decide on a verdict."""

from __future__ import annotations
