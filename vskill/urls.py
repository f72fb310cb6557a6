"""The URLs: health check, sign-in, admin, submissions, and the marketplace at the root."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from vskill.sign_in.passwords import change_password, forgotten_password, new_password
from vskill.sign_in.providers import urlpatterns as provider_steps
from vskill.sign_in.views import account, sign_in, sign_out
from vskill.token_views.device_api import device_code, device_token
from vskill.token_views.device_page import device
from vskill.token_views.own_tokens import own_tokens
from vskill.views import bad_request, healthz, not_found, server_error
from vskill.web.logins import login

# Here, because commands that need no address need no admin either.
admin.autodiscover()
admin.site.site_header = "vskill"
admin.site.site_title = "vskill"
admin.site.index_title = "Operations"

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("sign-in", sign_in, name="sign-in"),
    *provider_steps,
    path("sign-out", sign_out, name="sign-out"),
    path("sign-in/forgotten", forgotten_password, name="forgotten-password"),
    path("sign-in/new-password/<str:uidb64>/<str:token>", new_password, name="new-password"),
    path("account", account, name="account"),
    path("account/password", change_password, name="change-password"),
    path("admin/login/", login),
    path("admin/", admin.site.urls),
    path("device", device, name="device"),
    path("account/tokens", own_tokens, name="own-tokens"),
    path("api/cli/device/code", device_code),
    path("api/cli/device/token", device_token),
    path("", include("submissions.urls")),
    path("", include("marketplace.urls")),
]

handler400 = bad_request
handler404 = not_found
handler500 = server_error
