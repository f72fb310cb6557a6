"""The pages that visitors read."""

from __future__ import annotations
