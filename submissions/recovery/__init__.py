"""What stopped moving, what disagrees in the store, and what was given up: found, and put back."""

from __future__ import annotations
