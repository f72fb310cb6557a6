"""Tests of the KV layer."""

from __future__ import annotations

import pytest

# Not a test module by its name, and so not one whose asserts pytest would explain by itself.
pytest.register_assert_rewrite("tests.vskill.kv.conformance", "tests.vskill.kv.conformance_listing")
