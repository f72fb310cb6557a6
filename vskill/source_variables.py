"""The variables about fetching and following repositories, and what all variables give to every environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vskill.access_variables import access_of
from vskill.signing_variables import SIGNING_KEY_FILE
from vskill.source_credentials import is_proxy
from vskill.variable_kinds import HOSTS, TEXT, Fault, Kind, duration, integer
from vskill.variables import Variable, grouped
from vskill.webhook_secrets import WEBHOOKS

WEBHOOK_SECRET: Final = "VSKILL_WEBHOOK_SECRET"  # noqa: S105 - the name of a variable, not a secret
PROXY_LOGIN: Final = "VSKILL_SOURCE_PROXY_LOGIN"


def _read_proxy(text: str) -> str:
    if not is_proxy(text):
        # Without the text, which may hold a password.
        raise Fault(
            f"it is no address as http://proxy.example.org:3128, with a port; a user and password are {PROXY_LOGIN}"
        )
    return text


SOURCE_VARIABLES: Final[list[Variable]] = grouped(
    "What it accepts",
    Variable(
        "VSKILL_SOURCE_CA_FILE",
        TEXT,
        "",
        "absolute path of a PEM file with the authority that signed the certificates of your own git hosts, in every "
        "environment that names none; see [private-repositories.md](private-repositories.md)",
        shown="none",
        example="/etc/ssl/corp.pem",
    ),
    Variable(
        "VSKILL_SOURCE_PROXY",
        Kind("proxy", _read_proxy),
        "",
        "the proxy through which everything is fetched and past which nothing is, in every environment that "
        "names none; without a user, as `http://proxy.example.org:3128`",
        shown="none",
        example="http://proxy.example.org:3128",
    ),
    Variable(
        "VSKILL_SOURCE_UNPROXIED",
        HOSTS,
        [],
        "host names that are reached without that proxy, separated by commas, in every environment that names none",
        shown="none",
        example="git.corp.example",
    ),
    Variable(PROXY_LOGIN, TEXT, "", "`user:password` for that proxy", shown="none", secret=True),
    Variable("VSKILL_FETCH_SECONDS", duration(above=0), 60.0, "time that a fetch may take"),
    Variable(
        "VSKILL_FETCH_PROCESSES",
        integer(minimum=1),
        6,
        "fetches of a process that run at once, from one host at most half of them; the others wait",
    ),
    Variable(
        "VSKILL_FOLLOW_INTERVAL",
        duration(above=0),
        600.0,
        "time between two looks at a [followed repository](following.md); longer where more than 200 are followed",
    ),
    Variable(
        WEBHOOK_SECRET,
        TEXT,
        "",
        "what git hosts sign the [webhooks](following.md#webhooks) of followed repositories with, in every environment "
        "that has no secret of its own for them; without it they are refused",
        shown="none",
        secret=True,
    ),
)


def with_common_options(environments: Mapping[str, dict[str, Any]], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of all ``environments`` with what these ``values`` give to each of them.

    They count for an environment whose policy names none of its own, so that nothing that is added later goes past the
    proxy. An empty one of its own is none.
    """
    return {name: _with_common(options, values) for name, options in environments.items()}


def _with_common(options: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    policy, secrets = options.get("policy", {}), options.get("secrets", {})
    if not isinstance(policy, dict) or not isinstance(secrets, dict):
        # The environment says so itself, when it is built.
        return options
    common = {
        "source_ca_file": values["VSKILL_SOURCE_CA_FILE"],
        "source_proxy": values["VSKILL_SOURCE_PROXY"],
        "source_unproxied_hosts": values["VSKILL_SOURCE_UNPROXIED"],
        "signing_key_file": values[SIGNING_KEY_FILE],
        # "open" is what an environment is that says nothing.
        **{name: value for name, value in access_of(values).items() if value != "open"},
    }
    missing = {key: value for key, value in common.items() if value and key not in policy}
    if "source_proxy" in missing and values[PROXY_LOGIN]:
        secrets = {"source_proxy": PROXY_LOGIN, **secrets}
    if values[WEBHOOK_SECRET]:
        secrets = {WEBHOOKS: WEBHOOK_SECRET, **secrets}
    if not missing and secrets == options.get("secrets", {}):
        return options
    return {**options, "policy": {**policy, **missing}, "secrets": secrets}
