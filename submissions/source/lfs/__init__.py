"""Fetch what a repository keeps in Git LFS: pointers, the transfer, and where fetched objects are kept."""

from __future__ import annotations
