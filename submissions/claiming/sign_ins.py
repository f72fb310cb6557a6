"""Whom a sign-in of just now proves somebody to be: an owner at GitHub, or at the git host that the settings name.

An identity provider says who somebody is at a git host only where the operator has said so, and by the one claim that
names the account there. What people choose freely, such as a name for show or an address of mail, names no owner.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.utils import timezone

from marketplace.ownership.one_owner import why_not_of_one_owner
from marketplace.skills.publishers import CASE_BLIND_HOSTS, owner_identity
from vskill.sign_in_variables import OIDC

# People rename themselves at a host, and others take the name; so only a sign-in of just now tells who has it.
SIGN_IN_MINUTES: Final = 15
_GITHUB: Final = "github.com"
_HOST: Final = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+(:[0-9]{1,5})?")
# Letters that cannot be taken for others, and none of another script.
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}")
_CHOSEN_FREELY: Final = frozenset(
    {
        *("address", "email", "email_verified", "name", "given_name", "family_name", "middle_name", "phone_number"),
        *("picture", "profile", "website", "zoneinfo", "locale", "groups", "sub"),
    }
)


@dataclass(frozen=True)
class GitHost:
    """A git host of which an identity provider says who somebody is there: by which claim, and its own address."""

    host: str
    claim: str
    issuer: str


def owners_signed_in_as(user: Any) -> list[str]:
    """Return the owners, by their identities, that a sign-in of the last minutes proves ``user`` to be."""
    found = []
    if "github" in settings.SOCIALACCOUNT_PROVIDERS:
        login = _recent(user, "github").get("login")
        found.append(owner_identity(f"{_GITHUB}/{login}") if isinstance(login, str) and login else "")
    if (of_host := git_host()) is not None and not problems_of(of_host):
        found.append(_owner_at(of_host, _recent(user, OIDC)))
    return [one for one in found if one]


def git_host() -> GitHost | None:
    """Return the git host that the settings name; what stands there may be wrong."""
    providers: Any = settings.SOCIALACCOUNT_PROVIDERS
    for app in providers.get("openid_connect", {}).get("APPS", ()):
        options = app["settings"]
        if app["provider_id"] == OIDC and (options.get("git_host") or options.get("git_claim")):
            host = owner_identity(f"{options.get('git_host', '')}/-").partition("/")[0]
            return GitHost(host, options.get("git_claim", ""), options["server_url"])
    return None


def problems_of(found: GitHost) -> list[tuple[str, str]]:
    """Return what is wrong with a git host of the settings, each with what to do: then no sign-in proves anything."""
    problems = []
    if not found.claim or not _HOST.fullmatch(found.host):
        named = "VSKILL_OIDC_GIT_HOST names a git host, VSKILL_OIDC_GIT_CLAIM the claim with the names of its accounts."
        problems.append((named, "Set both, such as git.corp.example and preferred_username, or none of them."))
    if found.claim in _CHOSEN_FREELY:
        chosen = f"VSKILL_OIDC_GIT_CLAIM is {found.claim!r}, by which no account of a git host is known."
        problems.append((chosen, "Name the one with the name of the account, such as preferred_username of GitLab."))
    elsewhere = urlsplit(found.issuer).hostname != found.host.partition(":")[0]
    if found.host == _GITHUB or (found.host in CASE_BLIND_HOSTS and elsewhere):
        foreign = f"VSKILL_OIDC_GIT_HOST is {found.host}, whose accounts VSKILL_OIDC_ISSUER does not give out."
        problems.append((foreign, "Name the git host whose accounts it has. GitHub has a sign-in of its own."))
    return problems


def _owner_at(of_host: GitHost, data: Mapping[str, Any]) -> str:
    """Return the owner that an answer of the identity provider names, or '' where it names none."""
    token, told = (data.get(part) for part in ("id_token", "userinfo"))
    if not isinstance(token, dict) or str(token.get("iss", "")).rstrip("/") != of_host.issuer:
        # Of another provider, which the settings had before.
        return ""
    parts = [token, *([told] if isinstance(told, dict) else [])]
    names = [part[of_host.claim] for part in parts if part.get(of_host.claim) is not None]
    if not names or any(one != names[0] for one in names) or any(part.get("sub") != token.get("sub") for part in parts):
        return ""
    name = names[0]
    if (
        not isinstance(name, str)
        or not _NAME.fullmatch(name)
        or why_not_of_one_owner(f"https://{of_host.host}/{name}/-")
    ):
        return ""
    return owner_identity(f"{of_host.host}/{name}")


def _recent(user: Any, provider: str) -> Mapping[str, Any]:
    """Return what a provider said at the last sign-in, if that was just now."""
    since = timezone.now() - timedelta(minutes=SIGN_IN_MINUTES)
    found = SocialAccount.objects.filter(user_id=user.pk, provider=provider, last_login__gte=since).first()
    data = found.extra_data if found is not None else None
    return data if isinstance(data, dict) else {}
