"""Make the first admin of an installation."""

from __future__ import annotations

import json
import secrets
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

NAME: Final = "admin"


class Command(BaseCommand):
    """Create the user ``admin`` with a random password, unless there is an admin already."""

    help = (
        "Create the user 'admin' with a random password and print both as one JSON object. Where there is an admin "
        "already, print nothing and change nothing."
    )

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Create the admin; raise ``CommandError`` where another user has its name."""
        users = get_user_model()._default_manager
        if users.filter(is_superuser=True).exists():
            return
        if users.filter(username=NAME).exists():
            raise CommandError(
                f"No admin was made: the user {NAME!r} exists and is none. Make one with: manage.py createsuperuser"
            )
        password = secrets.token_urlsafe(12)
        with transaction.atomic():
            users.create_superuser(username=NAME, email="", password=password)
            # Before it is kept: a password that was kept and not printed would be lost, and no other would be made.
            self.stdout.write(json.dumps({"username": NAME, "password": password}))
            self.stdout.flush()
