"""Check skills outside the server, with its reading, its engines and its words, and say what was found."""

from __future__ import annotations
