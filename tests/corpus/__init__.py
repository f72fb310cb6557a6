"""Build the labelled folder of skills that ``manage.py evaluate`` measures on, from clones on this machine."""

from __future__ import annotations
