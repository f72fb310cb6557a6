"""What django-allauth may do here: sign in whom a provider of the settings vouches for, and nothing else."""

from __future__ import annotations

import logging
from typing import Any

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter, _build_apps_from_settings
from django.http import HttpRequest
from django.shortcuts import render

logger = logging.getLogger(__name__)


class Adapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # django-allauth has no types
    """Providers of the settings alone, so that no secret is in the database; an account that is new has no role."""

    def list_apps(self, request: HttpRequest, provider: Any = None, client_id: Any = None) -> list[Any]:  # noqa: ARG002 - given by django-allauth
        """Return the apps of the settings, those of ``provider`` or ``client_id`` where one is named."""
        found = _build_apps_from_settings(provider=provider, client_id=client_id)
        return [app for apps in found.values() for app in apps]

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: Any,
        error: Any = None,
        exception: Any = None,
        extra_context: Any = None,  # noqa: ARG002 - given by django-allauth
    ) -> None:
        """Answer that ``request`` signed nobody in, whatever the ``error`` or ``exception`` of the ``provider`` was."""
        logger.warning("a sign-in by %s was refused: %s %s", provider.id, error, type(exception).__name__)
        raise ImmediateHttpResponse(render(request, "socialaccount/authentication_error.html", status=403))
