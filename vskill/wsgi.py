"""The WSGI application, for hosts that cannot serve ASGI."""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

from vskill.unprepared_database import exit_unprepared

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "vskill.settings")

application = get_wsgi_application()

exit_unprepared()
