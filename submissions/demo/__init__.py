"""The demo: its skills, and the repository that is made of them."""

from __future__ import annotations
