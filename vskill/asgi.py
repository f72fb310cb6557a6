"""The ASGI application that the web server loads."""

from __future__ import annotations

import os

from django.conf import settings
from django.core.asgi import get_asgi_application
from django.urls import reverse

from vskill.processes.garbage import keep_what_is_loaded
from vskill.unprepared_database import exit_unprepared
from vskill.web.request_limits import LimitBodies
from vskill.web.trusted_proxies import Proxies, TrustProxies

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "vskill.settings")

application = TrustProxies(
    LimitBodies(get_asgi_application()), Proxies(settings.TRUSTED_PROXIES, settings.PROXY_HEADER)
)

exit_unprepared()

# The first to ask for an address would wait, and all others with it, until the patterns of all are read.
reverse("admin:index")

keep_what_is_loaded()
