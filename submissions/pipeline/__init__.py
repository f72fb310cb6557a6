"""One run over one submission: fetch, verify, decide, publish."""

from __future__ import annotations
