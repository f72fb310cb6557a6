"""The pages for visitors."""

from __future__ import annotations
