"""The fixtures that fetch a local repository, shared with the tests of ``source``."""

from __future__ import annotations

from tests.submissions.source.conftest import fetch as fetch
from tests.submissions.source.conftest import policy as policy
