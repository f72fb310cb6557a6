"""Children with limits of memory, time and output, and the names that may become files."""

from __future__ import annotations
