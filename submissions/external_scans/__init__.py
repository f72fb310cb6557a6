"""Scanners outside this registry: asked after publication and on demand, and heard over HTTP."""

from __future__ import annotations
