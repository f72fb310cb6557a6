"""The pages on which an account changes its password, or chooses another one by the link of a mail."""

from __future__ import annotations

import logging
from typing import Any, Final

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.views import PasswordChangeView, PasswordResetConfirmView
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse, reverse_lazy
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from vskill.accounts.access import asks_for
from vskill.hidden_characters import visible
from vskill.rate_limits.clients import client_of
from vskill.rate_limits.failed_logins import Attempt, begin, succeeded
from vskill.rate_limits.kinds import Form, Kind, rated
from vskill.sign_in.forgotten import LONGEST_TYPED, ask
from vskill.token_views.pages import private_page, signed_in_person
from vskill.web.refusals import refusal
from vskill.worker_context import require_worker_env

logger = logging.getLogger(__name__)

_SECONDS: Final = 60


class _Change(PasswordChangeView):
    template_name = "accounts/password.html"
    success_url = reverse_lazy("account")

    def form_valid(self, form: Any) -> HttpResponse:
        # It ends the other sessions: each is bound to the password that it began with.
        answer = super().form_valid(form)
        logger.info("the password of %s was changed", visible(form.user.get_username(), 150))
        messages.success(self.request, "Your password is changed. Every other session of your account has ended.")
        return answer


class _Choose(PasswordResetConfirmView):
    template_name = "accounts/new_password.html"
    success_url = reverse_lazy("sign-in")

    def form_valid(self, form: Any) -> HttpResponse:
        answer = super().form_valid(form)
        logger.info("the password of %s was set by the link of a mail", visible(form.user.get_username(), 150))
        messages.success(self.request, "Your new password counts from now on. Sign in with it.")
        return answer


_change: Final = _Change.as_view()
_choose: Final = _Choose.as_view()


@sensitive_post_parameters()
@rated(Kind.LOGINS)
@asks_for(None)
@require_http_methods(["GET", "HEAD", "POST"])
def change_password(request: HttpRequest) -> HttpResponseBase:
    """Show the form for another password, or take what was sent; guesses of the present one have to wait."""
    user = signed_in_person(request)
    if user is None:
        return HttpResponseRedirect(f"{reverse('sign-in')}?next={reverse('change-password')}")
    if not user.has_usable_password():
        return private_page(request, "accounts/no_password.html", {}, 400 if request.method == "POST" else 200)
    if request.method != "POST":
        return _change(request)
    # Beside the attempts to sign in: whoever keeps those waiting keeps nobody from this.
    attempt = Attempt(f"{user.get_username()}\0change", client_of(request))
    if seconds := begin(attempt):
        return refusal(Form.PAGE, "Too many attempts failed. This one was not checked, nothing was changed.", seconds)
    answer: Any = _change(request)
    form: PasswordChangeForm | None = (getattr(answer, "context_data", None) or {}).get("form")
    if form is None or "old_password" not in form.errors:
        succeeded(attempt)
    return answer  # type: ignore[no-any-return]  # a response of Django's view


@rated(Kind.LOGINS)
@asks_for(None)
@require_http_methods(["GET", "HEAD", "POST"])
def forgotten_password(request: HttpRequest) -> HttpResponse:
    """Ask for a name or an address, and say that a mail comes if there is such an account, whether or not there is."""
    if not settings.MAIL_SERVER:
        raise Http404("This registry sends no mails.")
    if request.method != "POST":
        return private_page(request, "accounts/forgotten.html", {})
    typed = request.POST.get("account", "")[:LONGEST_TYPED].replace("\0", "").strip()
    if not typed:
        return private_page(request, "accounts/forgotten.html", {"error": "Give a name or an address."}, 400)
    if not ask(require_worker_env(), typed):
        return refusal(Form.PAGE, "Too many mails wait to be sent. Nothing was noted.", _SECONDS)
    return private_page(request, "accounts/forgotten.html", {"asked": True})


@sensitive_post_parameters()
@rated(Kind.LOGINS)
@asks_for(None)
@require_http_methods(["GET", "HEAD", "POST"])
def new_password(request: HttpRequest, uidb64: str, token: str) -> HttpResponseBase:
    """Let the reader of a mail choose a password; the link counts once, and for an hour."""
    return _choose(request, uidb64=uidb64, token=token)
