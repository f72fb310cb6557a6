"""Tests of access tokens."""

from __future__ import annotations
