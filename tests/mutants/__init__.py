"""Break the code in small ways, and count how many of the breaks the tests notice: ``python -m tests.mutants``."""

from __future__ import annotations
