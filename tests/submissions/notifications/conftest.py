"""A mail server, and an account with a confirmed address, for the tests of mails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
from pytest_django.fixtures import Settings

from tests.submissions.notifications.mail_server import MailServer, mail_server
from tests.submissions.notifications.told import confirmed, person
from vskill.environments import WorkerEnv

ADDRESS: Final = "ada@example.org"


@pytest.fixture
def post(settings: Settings) -> Iterator[MailServer]:
    with mail_server() as one:
        settings.MAIL_SERVER, settings.MAIL_FROM = one.options, "vskill@example.net"
        yield one


@pytest.fixture
def ada(env: WorkerEnv, post: MailServer) -> Any:
    """Return an account whose address is confirmed."""
    return confirmed(env, person("ada"), ADDRESS)
