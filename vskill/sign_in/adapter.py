"""What django-allauth may do here: sign in whom a provider of the settings vouches for, and nothing else."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter, _build_apps_from_settings
from allauth.socialaccount.providers.base import AuthProcess
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from vskill.proxied_services import is_asked_directly, with_login
from vskill.worker_context import get_worker_env

logger = logging.getLogger(__name__)

_LONGEST_NAME: Final = 150
# Of the names that people have at a provider: letters that cannot be taken for others, and no "@".
_OTHERS: Final = re.compile(r"[^A-Za-z0-9_.+-]+")


class Adapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # django-allauth has no types
    """Providers of the settings alone, so that no secret is in the database; an account that is new has no role."""

    def list_apps(self, request: HttpRequest, provider: Any = None, client_id: Any = None) -> list[Any]:  # noqa: ARG002 - given by django-allauth
        """Return the apps of the settings, those of ``provider`` or ``client_id`` where one is named."""
        found = _build_apps_from_settings(provider=provider, client_id=client_id)
        return [app for apps in found.values() for app in apps]

    def get_requests_session(self) -> Any:
        """Return a session that asks a provider, through the proxy of the current environment where there is one."""
        session = super().get_requests_session()
        session.request = partial(_through_proxy, session.request)
        return session

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        """Refuse whoever may not sign in, and all but a sign-in: an account joins no other account."""
        inactive = sociallogin.is_existing and not sociallogin.user.is_active
        if inactive or sociallogin.state.get("process", AuthProcess.LOGIN) != AuthProcess.LOGIN:
            raise ImmediateHttpResponse(_refused(request))

    def save_user(self, request: HttpRequest, sociallogin: Any, form: Any = None) -> Any:
        """Save a new account under a name that says which provider vouches for it.

        People choose their names there, and roles and tokens are given to names here.
        """
        account, user = sociallogin.account, sociallogin.user
        end = f"@{account.provider}"
        name = _OTHERS.sub("-", user.get_username()).strip("-")
        wanted = f"{name[: _LONGEST_NAME - len(end)]}{end}"
        if not name or type(user)._default_manager.filter(username__iexact=wanted).exists():
            # Unique, because the number that the provider gave the account is.
            wanted = f"{hashlib.sha256(account.uid.encode()).hexdigest()[:24]}{end}"
        user.username = wanted
        return super().save_user(request, sociallogin, form)

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
        raise ImmediateHttpResponse(_refused(request))


def _through_proxy(ask: Callable[..., Any], method: str, url: str, **options: Any) -> Any:
    """Return what ``ask`` returns for a request; a proxy that is named in it goes before those of variables."""
    env = get_worker_env()
    through = env.policy.source_proxy if env is not None else ""
    if env is not None and through and not is_asked_directly(url, env.policy.source_unproxied_hosts):
        proxy = with_login(through, env.secrets.get("source_proxy", ""))
        options["proxies"] = {"http": proxy, "https": proxy}
    return ask(method, url, **options)


def _refused(request: HttpRequest) -> HttpResponse:
    return render(request, "socialaccount/authentication_error.html", status=403)
