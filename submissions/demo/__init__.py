"""The skills of the demo, and the code that builds a repository from them."""

from __future__ import annotations
