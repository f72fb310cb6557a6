"""Published skills: written in one transaction, listed, searched, withdrawn and restored."""

from __future__ import annotations
