"""The pages of an account: signing in and out, and what the account may do here."""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings
from django.contrib.auth import logout
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from vskill.accounts.access import asks_for, permitted
from vskill.accounts.admin_site import works_here
from vskill.accounts.roles import Action, role_in
from vskill.rate_limits.kinds import Kind, rated
from vskill.sign_in.providers import offered
from vskill.web.logins import slowed_down
from vskill.worker_context import require_worker_env


class _SignIn(LoginView):
    template_name = "accounts/sign_in.html"
    next_page = "/"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), "providers": offered(), "mails": bool(settings.MAIL_SERVER)}


_form: Final = _SignIn.as_view()


@sensitive_post_parameters()
@rated(Kind.LOGINS)
@asks_for(None)
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponseBase:
    """Show the form to sign in, or check what was sent; attempts wait after failures as those at the admin do."""
    if request.method == "POST":
        return slowed_down(request, _form)
    user: Any = request.user
    return redirect("account") if user.is_authenticated and "next" not in request.GET else _form(request)


@rated(Kind.READS)
@asks_for(None)
@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session."""
    logout(request)
    return HttpResponseRedirect("/")


@rated(Kind.READS)
@asks_for(None)
@require_safe
def account(request: HttpRequest) -> HttpResponse:
    """Show who is signed in and what the account may do here; a stranger is led to the sign-in."""
    user: Any = request.user
    if not user.is_authenticated:
        return HttpResponseRedirect(f"{reverse('sign-in')}?next={reverse('account')}")
    env = require_worker_env()
    may = {action.value: permitted(user, env, action) for action in Action}
    context = {"account": user, "role": role_in(user, env), "may": may, "admin": works_here(user)}
    context["password"] = user.has_usable_password()
    response = render(request, "accounts/account.html", context)
    response["Cache-Control"] = "no-store"
    return response
