"""Tests of scans outside the server."""

from __future__ import annotations
