"""Scanning a published version again because a visitor or a program asks for it."""

from __future__ import annotations
