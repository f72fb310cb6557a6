"""Submit many skills as one job: started once, accepted in slices, followed, stopped, and safe from kills."""

from __future__ import annotations
