"""The health of the repositories that skills were published from: looked at now and then, and kept."""

from __future__ import annotations
