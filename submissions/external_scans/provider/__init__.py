"""A scanner outside the registry: takes dispatches over HTTP, runs semgrep with our own rules, posts what it found."""

from __future__ import annotations
