"""Submissions in the KV table: written by compare-and-set, read by indexed columns, and what engines found."""

from __future__ import annotations
