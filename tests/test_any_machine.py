"""A property test asks whether something is right, and never how fast the machine was that day."""

from __future__ import annotations

from hypothesis import settings


def test_no_property_test_has_a_deadline() -> None:
    # Said for all tests at once: whoever runs one folder alone must not get another rule.
    assert settings.default is not None
    assert settings.default.deadline is None
