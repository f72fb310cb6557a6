"""What clients download: archives, the files they are built from, and how versions differ."""

from __future__ import annotations
