"""Fetch repositories: their addresses and hosts, git within limits, and the files of one commit."""

from __future__ import annotations
