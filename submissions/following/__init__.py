"""Followed repositories: looked at at a pace, or when a webhook names them; their new commits are submitted."""

from __future__ import annotations
