"""Child processes with limits of memory, time and output, for git and for engines."""

from __future__ import annotations
