"""Skills that accounts upload: their files, kept as an immutable source, and the calls of clawhub that send them."""

from __future__ import annotations
