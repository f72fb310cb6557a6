"""Tests of how verification is measured."""

from __future__ import annotations
