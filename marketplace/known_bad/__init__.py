"""Known bad content: remembered and forgotten with a reason, and read from lists."""

from __future__ import annotations
