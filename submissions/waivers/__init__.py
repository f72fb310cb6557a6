"""Findings that a reviewer accepts in one skill: granted with a reason, an owner and an end, and taken back."""

from __future__ import annotations
