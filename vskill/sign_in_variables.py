"""The variables about providers outside that say who signs in, and Django's settings that follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vskill.variable_kinds import TEXT, URL
from vskill.variables import Variable, grouped

SIGN_IN_APPS: Final = (
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.github",
    "allauth.socialaccount.providers.openid_connect",
)
OIDC: Final = "oidc"
_SEE: Final = "; see [accounts.md](accounts.md)"

SIGN_IN_VARIABLES: Final[list[Variable]] = grouped(
    "Who may use it",
    Variable("VSKILL_GITHUB_ID", TEXT, "", f"client id of an OAuth app of GitHub, for the sign-in{_SEE}", shown="none"),
    Variable("VSKILL_GITHUB_SECRET", TEXT, "", "client secret of that app", shown="none", secret=True),
    Variable(
        "VSKILL_OIDC_ISSUER",
        URL,
        "",
        f"address of an OpenID Connect provider, for the sign-in{_SEE}",
        shown="none",
        example="https://login.corp.example",
    ),
    Variable("VSKILL_OIDC_ID", TEXT, "", "client id at that provider", shown="none"),
    Variable("VSKILL_OIDC_SECRET", TEXT, "", "client secret at that provider", shown="none", secret=True),
    Variable(
        "VSKILL_OIDC_GIT_HOST",
        TEXT,
        "",
        "git host whose accounts that provider has, so that a sign-in proves who somebody is there; see "
        "[ownership.md](ownership.md)",
        shown="none",
        example="git.corp.example",
    ),
    Variable(
        "VSKILL_OIDC_GIT_CLAIM",
        TEXT,
        "",
        "claim of that provider that names an account of the git host",
        shown="none",
        example="preferred_username",
    ),
    Variable("VSKILL_OIDC_NAME", TEXT, "OpenID Connect", "what the sign-in calls that provider"),
)


def sign_in_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the sign-in: of django-allauth, providers that are configured completely and no more."""
    return {
        "SOCIALACCOUNT_PROVIDERS": _providers(values),
        "SOCIALACCOUNT_ADAPTER": "vskill.sign_in.adapter.Adapter",
        # An address of mail proves nothing here and is no name: providers let people choose it.
        "ACCOUNT_UNIQUE_EMAIL": False,
        "ACCOUNT_EMAIL_VERIFICATION": "none",
        # The limits of clients count these requests.
        "ACCOUNT_RATE_LIMITS": False,
        "LOGIN_REDIRECT_URL": "/",
        # Seconds; for this long the link of a mail lets choose another password.
        "PASSWORD_RESET_TIMEOUT": 3600,
    }


def _providers(values: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if values["VSKILL_GITHUB_ID"] and values["VSKILL_GITHUB_SECRET"]:
        app = {"client_id": values["VSKILL_GITHUB_ID"], "secret": values["VSKILL_GITHUB_SECRET"], "name": "GitHub"}
        # No scope: who somebody is, is public.
        found["github"] = {"OAUTH_PKCE_ENABLED": True, "SCOPE": [], "APPS": [app]}
    if values["VSKILL_OIDC_ISSUER"] and values["VSKILL_OIDC_ID"] and values["VSKILL_OIDC_SECRET"]:
        app = {
            "provider_id": OIDC,
            "name": values["VSKILL_OIDC_NAME"],
            "client_id": values["VSKILL_OIDC_ID"],
            "secret": values["VSKILL_OIDC_SECRET"],
            "settings": {
                "server_url": values["VSKILL_OIDC_ISSUER"].rstrip("/"),
                "git_host": values["VSKILL_OIDC_GIT_HOST"],
                "git_claim": values["VSKILL_OIDC_GIT_CLAIM"],
            },
        }
        found["openid_connect"] = {"OAUTH_PKCE_ENABLED": True, "APPS": [app]}
    return found
