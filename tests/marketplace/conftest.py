"""Settings of the property tests."""

from __future__ import annotations

from hypothesis import settings

# A machine that does something else at the same time is slow; that is no fault of what is tested.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")
