"""The WSGI application, for hosts that cannot serve ASGI."""

from __future__ import annotations

import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from vskill.processes.garbage import keep_what_is_loaded
from vskill.unprepared_database import exit_unprepared
from vskill.web.trusted_proxies import Proxies, trust_proxies_of_wsgi

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "vskill.settings")

application = trust_proxies_of_wsgi(get_wsgi_application(), Proxies(settings.TRUSTED_PROXIES, settings.PROXY_HEADER))

exit_unprepared()

keep_what_is_loaded()
