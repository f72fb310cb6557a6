"""The WSGI application, for hosts that cannot serve ASGI."""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "vskill.settings")

application = get_wsgi_application()
