"""Tests of how people and programs come by tokens."""

from __future__ import annotations
