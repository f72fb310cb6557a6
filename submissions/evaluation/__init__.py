"""Measure verification on labelled skills: what is held, what passes, and what it costs."""

from __future__ import annotations
