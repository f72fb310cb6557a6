"""The ASGI application that the web server loads."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

from vskill.unprepared_database import exit_unprepared
from vskill.web.request_limits import LimitBodies

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "vskill.settings")

application = LimitBodies(get_asgi_application())

exit_unprepared()
