"""One server and one browser for all browser tests of a process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.chromium import Browser, open_browser, why_not
from tests.browser.server import Server, running_server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve a registry with published skills and submissions."""
    if (reason := why_not()) is not None:
        pytest.skip(reason)
    folder: Path = tmp_path_factory.mktemp("browser")
    with running_server(folder) as serving:
        yield serving


@pytest.fixture(scope="session")
def chromium(server: Server) -> Iterator[Browser]:
    """Start one chromium; tests use it through ``browser``."""
    with open_browser(server.base) as opened:
        yield opened


@pytest.fixture
def browser(chromium: Browser) -> Browser:
    """Return the browser with light colours and without messages of the previous test."""
    chromium.colours("light")
    chromium.complaints()
    chromium.hosts_asked()
    return chromium
