"""The environments that one process serves, as plain values that are read from the settings.

A process may serve several, such as a public registry and an internal one. KV namespaces, the queue, policies and
secrets are reached only through an environment. This module imports no app: each app builds its own namespaces and
queue from these values.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed

from vskill.access_variables import ACCESS_OPTIONS
from vskill.errors import VskillError
from vskill.policy_values import read_scanners, read_weights
from vskill.reserved_names import ReservedName, read_reserved_names
from vskill.source_audiences import read_audiences, read_credential_audience
from vskill.source_credentials import SourceCredential, check_secrets, read_credentials, read_proxy
from vskill.source_ssh_keys import SourceSshKey, read_ssh_keys
from vskill.variable_kinds import HOSTS, Fault
from vskill.webhook_secrets import WebhookSecret, check_webhook_secrets, read_webhook_secrets

# It has to fit the namespace column of an entry.
_NAME: Final = re.compile(r"[a-z0-9_-]{1,64}")


class UnknownEnvironment(VskillError):
    """No environment has this name or serves this host."""

    code = "unknown_environment"


class SecretMissing(VskillError):
    """The environment has no secret of this name."""

    code = "secret_missing"


@dataclass(frozen=True)
class Policy:
    """What an environment allows.

    ``source_file_roots``: directories below which ``file://`` repositories are accepted (none by default).
    ``source_private_hosts``: host names that may resolve to private addresses (an internal git server).
    ``source_rewrites``: pairs of URL prefixes, the first replaced by the second for fetching only (a mirror).
    ``source_ca_file``: PEM file of the authority that signed the certificates of internal hosts.
    ``source_ssh_keys``: which key opens which host, or owner on a host, over ssh, and the host keys that are accepted.
    ``source_proxy``: proxy through which everything is fetched; the secret of that name is ``user:password`` for it.
    ``source_unproxied_hosts``: host names that are reached without that proxy.
    ``source_credentials``: which secret is sent to which host, or owner on a host, that asks for sign-in.
    ``webhook_secrets``: which secret signs the webhooks of which host, or owner on a host.
    ``reserved_names``: patterns of names that only the skills of certain owners may have.
    ``webhook_private_hosts``: host names that webhooks of operators may go to although they have private addresses.
    ``trusted_owners``: ``host/owner`` whose skills are not held for findings below critical (VENDOR_APPROVED).
    ``scan_trusted_owners``: whether engines read their skills; without it these are published as "not scanned".
    ``queue_weights``: pairs of ``host/owner`` and how many turns in the queue it has for each turn of another.
    ``rescans_per_hour``: how many published versions are scanned again within an hour at most; 0 for none.
    ``quarantine_flags``: kinds of flags that withhold a published version from everybody (none by default).
    ``external_scanners``: pairs of the name of a scanner outside this registry and the address where it is asked.
    ``signing_key_file``: absolute path of the file with the keys that sign what is published (none by default).
    ``access``: what strangers may: ``open`` read and submit, ``read-only`` read, ``closed`` nothing.
    ``sign_in_role``: the role of who signed in and was granted none (none by default).
    ``audiences``: to whom new skills of a host, an owner or a repository are shown: ``public``, ``members`` or a team.
    ``credential_audience``: the same for whatever is read with a credential or a key, where ``audiences`` says nothing.
    ``tier1_engines`` and ``tier2_engines``: names of the verification engines that run in each tier.
    """

    source_file_roots: tuple[str, ...] = ()
    source_private_hosts: tuple[str, ...] = ()
    source_rewrites: tuple[tuple[str, str], ...] = ()
    source_ca_file: str = ""
    source_proxy: str = ""
    source_unproxied_hosts: tuple[str, ...] = ()
    source_ssh_keys: tuple[SourceSshKey, ...] = ()
    webhook_secrets: tuple[WebhookSecret, ...] = ()
    webhook_private_hosts: tuple[str, ...] = ()
    source_credentials: tuple[SourceCredential, ...] = ()
    reserved_names: tuple[ReservedName, ...] = ()
    trusted_owners: tuple[str, ...] = ()
    scan_trusted_owners: bool = True
    queue_weights: tuple[tuple[str, float], ...] = ()
    rescans_per_hour: int = 1200
    quarantine_flags: tuple[str, ...] = ()
    external_scanners: tuple[tuple[str, str], ...] = ()
    signing_key_file: str = ""
    access: str = "open"
    sign_in_role: str = ""
    audiences: tuple[tuple[str, str], ...] = ()
    credential_audience: str = "public"
    tier1_engines: tuple[str, ...] = ("vskill", "skilltotal")
    tier2_engines: tuple[str, ...] = ()


@dataclass(frozen=True)
class WorkerEnv:
    """One environment.

    ``name`` is the value of the namespace column of its entries. ``hosts`` are the host names that it serves, in lower
    case and without port, ``*`` for any. ``database`` and ``queue`` are aliases. ``repr`` leaves out the secrets.
    """

    name: str
    hosts: tuple[str, ...] = ()
    public_url: str = ""
    database: str = "default"
    queue: str = "default"
    policy: Policy = field(default_factory=Policy)
    secrets: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False, compare=False)

    def secret(self, name: str) -> str:
        """Return the secret called ``name``; raise ``SecretMissing`` where the environment has none."""
        try:
            return self.secrets[name]
        except KeyError:
            raise SecretMissing(
                f"Environment {self.name!r} has no secret {name!r}. "
                "Name its variable under 'secrets' in VSKILL_ENVIRONMENTS."
            ) from None


def _not(name: str, option: str, what: str, value: Any) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"VSKILL_ENVIRONMENTS: {option!r} of {name!r} is {what}; it was {value!r}.")


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, (list, tuple)) else value


def _listed(name: str, option: str, value: Any) -> Any:
    # A text would be read as the list of its letters, each of them an allowed host or directory.
    if not isinstance(value, (list, tuple)):
        raise _not(name, option, "a list", value)
    return _tuples(value)


def _hosts(name: str, hosts: tuple[Any, ...]) -> tuple[str, ...]:
    try:
        return tuple(host.lower() for one in hosts for host in HOSTS.read(str(one)))
    except Fault as fault:
        raise ImproperlyConfigured(f"VSKILL_ENVIRONMENTS: 'hosts' of {name!r}: {fault}.") from None


_READERS: Final[Mapping[str, Callable[[str, Any], Any]]] = {
    "queue_weights": read_weights,
    "source_credentials": read_credentials,
    "webhook_secrets": read_webhook_secrets,
    "source_ssh_keys": read_ssh_keys,
    "external_scanners": read_scanners,
    "reserved_names": read_reserved_names,
    "audiences": read_audiences,
    "credential_audience": read_credential_audience,
}


def _policy_value(name: str, option: str, value: Any) -> Any:
    if (read := _READERS.get(option)) is not None:
        return read(name, value)
    default = getattr(Policy, option)
    if isinstance(default, bool):
        # Not by truth: the text "false" would be true.
        if not isinstance(value, bool):
            raise _not(name, option, "true or false", value)
        return value
    if isinstance(default, int):
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise _not(name, option, "a whole number from 0", value)
        return value
    if not isinstance(default, str):
        return _listed(name, option, value)
    if not isinstance(value, str):
        raise _not(name, option, "a text", value)
    if option in ACCESS_OPTIONS and value not in ACCESS_OPTIONS[option]:
        known = ", ".join(map(repr, ACCESS_OPTIONS[option]))
        raise _not(name, option, f"one of {known}", value)
    return read_proxy(name, value) if option == "source_proxy" else value


def _policy(name: str, options: Mapping[str, Any]) -> Policy:
    found = {key: _policy_value(name, key, value) for key, value in options.items()}
    for pair in found.get("source_rewrites", ()):
        if not (isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(prefix, str) for prefix in pair)):
            raise ImproperlyConfigured(
                f"VSKILL_ENVIRONMENTS: 'source_rewrites' of {name!r} is a list of pairs of URL prefixes; "
                f"one of them was {pair!r}."
            )
    for option in {"source_private_hosts", "webhook_private_hosts", "source_unproxied_hosts"} & found.keys():
        # As the host of an address is compared with them.
        found[option] = tuple(str(host).lower() for host in found[option])
    return Policy(**found)


def build_environment(name: str, options: Mapping[str, Any], variables: Mapping[str, str]) -> WorkerEnv:
    """Return the environment called ``name`` that its ``options`` in ``VSKILL_ENVIRONMENTS`` describe.

    ``options["secrets"]`` maps the name of a secret to the name of an environment variable in ``variables``, so that
    settings contain no secret. Raises ``ImproperlyConfigured`` for an unknown option or policy, one of the wrong type,
    an invalid name, and a secret whose variable is not set.
    """
    if not _NAME.fullmatch(name):
        raise ImproperlyConfigured(
            f"VSKILL_ENVIRONMENTS: {name!r} is no name; use 1 to 64 small letters, digits, hyphens and underscores."
        )
    known = {one.name for one in fields(WorkerEnv)} - {"name"}
    if unknown := set(options) - known:
        raise ImproperlyConfigured(
            f"VSKILL_ENVIRONMENTS: {name!r} has unknown options {sorted(unknown)}; known: {sorted(known)}."
        )
    policy = options.get("policy", {})
    if unknown := set(policy) - {one.name for one in fields(Policy)}:
        raise ImproperlyConfigured(f"VSKILL_ENVIRONMENTS: {name!r} has unknown policies {sorted(unknown)}.")
    secrets: dict[str, str] = {}
    for secret, variable in options.get("secrets", {}).items():
        if variable not in variables:
            raise ImproperlyConfigured(
                f"VSKILL_ENVIRONMENTS: secret {secret!r} of {name!r} needs the variable {variable}."
            )
        secrets[secret] = variables[variable]
    allowed = _policy(name, policy)
    check_secrets(name, allowed.source_credentials, secrets)
    check_webhook_secrets(name, allowed.webhook_secrets, secrets)
    return WorkerEnv(
        name=name,
        hosts=_hosts(name, _listed(name, "hosts", options.get("hosts", ()))),
        public_url=str(options.get("public_url", "")).rstrip("/"),
        database=options.get("database", "default"),
        queue=options.get("queue", "default"),
        policy=allowed,
        secrets=MappingProxyType(secrets),
    )


@lru_cache(maxsize=1)
def all_environments() -> Mapping[str, WorkerEnv]:
    """Return all configured environments by name, in the order of the settings."""
    return MappingProxyType(
        {name: build_environment(name, options, os.environ) for name, options in settings.VSKILL_ENVIRONMENTS.items()}
    )


def databases_in_use() -> list[str]:
    """Return the alias of every database that this installation uses: users and sessions are kept in ``default``."""
    return list(dict.fromkeys(["default", *(env.database for env in all_environments().values())]))


def get_environment(name: str) -> WorkerEnv:
    """Return the environment called ``name``; raise ``UnknownEnvironment`` where there is none."""
    try:
        return all_environments()[name]
    except KeyError:
        known = ", ".join(all_environments())
        raise UnknownEnvironment(f"There is no environment {name!r}. Configured: {known}.") from None


def environment_for_host(host: str) -> WorkerEnv:
    """Return the environment that serves ``host``, by an exact name or else by ``*``.

    A port and a final dot are ignored. Raises ``UnknownEnvironment`` where none serves it.
    """
    bare = host.lower() if host.endswith("]") else host.lower().rsplit(":", 1)[0].removesuffix(".")
    for wanted in (bare, "*"):
        for env in all_environments().values():
            if wanted in env.hosts:
                return env
    raise UnknownEnvironment(f"No environment of this server answers to the host {bare!r}. Add it to VSKILL_HOSTS.")


def _forget_environments(*, setting: str, **_kwargs: Any) -> None:
    if setting == "VSKILL_ENVIRONMENTS":
        all_environments.cache_clear()


setting_changed.connect(_forget_environments, dispatch_uid="vskill.environments")
