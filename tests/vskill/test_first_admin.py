"""The first admin is made once, and its password is printed once."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.contrib.auth import authenticate, get_user_model
from django.core.management import CommandError, call_command

pytestmark = pytest.mark.django_db


def first_admin() -> str:
    out = StringIO()
    call_command("first_admin", stdout=out)
    return out.getvalue()


def test_the_first_admin_can_log_in_with_what_is_printed_and_there_is_no_second_one() -> None:
    made = json.loads(first_admin())
    user = authenticate(**made)
    assert user is not None
    assert user.is_superuser
    assert first_admin() == ""
    assert get_user_model()._default_manager.count() == 1


def test_a_name_that_another_user_has_is_said() -> None:
    get_user_model()._default_manager.create_user(username="admin", password="a long password")
    with pytest.raises(CommandError, match="createsuperuser"):
        first_admin()
