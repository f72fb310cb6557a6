"""A self-hosted registry of verified agent skills."""

from __future__ import annotations

__version__ = "0.1.0"
