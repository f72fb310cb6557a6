"""Published skills: written in one transaction, listed, searched, withdrawn and brought back."""

from __future__ import annotations
