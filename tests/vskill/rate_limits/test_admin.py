"""Operators see which clients come near their limits."""

from __future__ import annotations

import time

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from vskill.rate_limits.models import RequestCount

pytestmark = pytest.mark.django_db


def test_operators_see_the_counts_of_their_environment_the_highest_first(client: Client) -> None:
    client.force_login(get_user_model().objects.create_superuser("root", "", "long enough to pass"))
    for namespace, key, count in (("default", "few", 3), ("default", "many", 900), ("internal", "elsewhere", 5)):
        RequestCount.objects.create(namespace=namespace, key=key, count=count, ends_at=time.time() + 60)
    page = client.get("/admin/rate_limits/requestcount/").content.decode()
    assert page.index(">many<") < page.index(">few<")
    assert "elsewhere" not in page
    assert ">many<" not in client.get("/admin/rate_limits/requestcount/?q=fe").content.decode()
    assert client.get("/admin/rate_limits/requestcount/add/").status_code == 403
