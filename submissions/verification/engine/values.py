"""What is known of a value: its text where it is constant, and where it comes from."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from submissions.verification.engine.hosts import CHAT_HOOKS, DROPS, brand, is_address, is_local, urls_in
from submissions.verification.engine.vocabulary import DOTENV_ONLY, PERSONAL, PUBLIC_NAME, SECRET_FILE, SECRET_NAME

SECRET: Final = "secret"  # noqa: S105 - the name of a label
DOTENV: Final = "dotenv"
PERSON: Final = "personal"
ENVIRONMENT: Final = "environment"
FILE: Final = "file"
REMOTE: Final = "remote"
DECODED: Final = "decoded"
HOST: Final = "host"
TOKEN: Final = "token:"  # noqa: S105 - the beginning of a label
"""Labels say where a value comes from; ``token:NAME`` is a secret of the environment, ``remote:URL`` a download."""
_OWNERS: Final = re.compile(
    r"(?:^|_)(AWS|GITHUB|GH|GITLAB|OPENAI|ANTHROPIC|STRIPE|SLACK|NPM|HF|HUGGINGFACE|DATABASE|SENDGRID|TWILIO"
    r"|GOOGLE|GEMINI"
    r"|AZURE|DOCKER|JWT|SSH|PYPI|VERCEL|CLOUDFLARE|HEROKU|DISCORD|TELEGRAM|MONGO|POSTGRES|MYSQL|REDIS|KUBE"
    r"|TERRAFORM|ETH"
    r"|WALLET|PRIVATE|SESSION|ADMIN|ROOT|USER|MASTER)(?:_|$)"
)
_COMMON: Final = frozenset(
    {
        "API",
        "KEY",
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "ACCESS",
        "AUTH",
        "BOT",
        "PRIVATE",
        "SESSION",
        "USER",
        "APP",
        "ADMIN",
        "URL",
    }
)
# What a path of a secret, or a command for what is personal, cannot do without; a quick test before the slow patterns.
TELLING: Final = (
    *[
        ".ssh",
        "id_",
        "aws",
        "git-cred",
        "docker",
        "kube",
        "gnupg",
        "gcloud",
        "azure",
        "shadow",
        "sudoers",
        "npmrc",
        "pypirc",
        "netrc",
        "pgpass",
        "vault",
        "terraform",
        ".env",
        "secret",
        "credential",
        "wallet",
        "solana",
        ".claude",
        ".anthropic",
        "openclaw",
        "codex",
        "gemini",
        ".config",
        "privkey",
        "private",
        "server-key",
        "1password",
        "password-store",
        "kdbx",
        "clawdbot",
        ".pem",
        ".key",
        ".p12",
        ".pfx",
        "keystore",
        ".jks",
        "mnemonic",
        "seed",
        "metamask",
        "auth-profiles",
        "clip",
        "xsel",
        "pbpaste",
        "screen",
        "scrot",
        "grab",
        "history",
        "login",
        "chrome",
        "cookies",
        "places.sqlite",
        "security",
        "keychain",
        "keyring",
        "pynput",
        "keyboard",
        "getasync",
        "chat.db",
    ],
    "op item",
    "op read",
    "op signin",
)
_ALSO: Final = {"GH": "github", "HF": "huggingface", "GEMINI": "google", "AWS": "amazon", "DOCKER": "docker"}


# Nobody changes one, but freezing it would double what it costs to make the millions that large files have.
@dataclass(slots=True)
class Value:
    """A value: ``text`` where it is constant, else None, and its labels."""

    text: str | None = None
    labels: frozenset[str] = frozenset()

    def __or__(self, other: Value) -> Value:
        """Return a value that may be either: without text, with the labels of both."""
        return Value(None, self.labels | other.labels)

    def beside(self, other: Value) -> Value:
        """Return a value that may be either, with the texts of both in one, within a length."""
        texts = [one.text for one in (self, other) if one.text]
        return Value(" ".join(dict.fromkeys(texts))[:2000] if texts else None, self.labels | other.labels)


NOTHING: Final = Value()


@dataclass
class Functions:
    """What is known of a skill's functions, from all of its files, by their bare names.

    ``returned`` are the values that they return, ``parameters`` their names, and ``given`` what callers pass for one.
    """

    returned: dict[str, Value] = field(default_factory=dict)
    parameters: dict[str, list[str]] = field(default_factory=dict)
    given: dict[tuple[str, str], Value] = field(default_factory=dict)


def may_name_secret(lower: str) -> bool:
    """Return whether ``lower``, a text in lower case, has what a path of a secret cannot do without."""
    # No generator: this runs for every word of every command.
    for word in TELLING:  # noqa: SIM110
        if word in lower:
            return True
    return False


@lru_cache(maxsize=4096)
def labels_of_path(text: str) -> frozenset[str]:
    """Return the labels of what lies at a path that ``text`` names."""
    if not may_name_secret(text.lower()):
        return frozenset()
    found = set()
    if (match := SECRET_FILE.search(text)) is not None:
        found.add(DOTENV if DOTENV_ONLY.fullmatch(match[0]) else SECRET)
    if PERSONAL.search(text):
        found.add(PERSON)
    return frozenset(found)


def labels_of_name(name: str) -> frozenset[str]:
    """Return the labels of a variable of the environment."""
    names = name.split() if " " in name else [name]
    return frozenset(
        TOKEN + one.upper() for one in names[:40] if SECRET_NAME.search(one) and not PUBLIC_NAME.search(one)
    )


def send_rule(labels: frozenset[str], destination: str, *, body: bool = True) -> str:
    """Return the rule that sending a value with ``labels`` to ``destination`` (an address) breaks, or ''.

    ``body`` is false for what only authorises a request. Nothing is broken towards this machine, nor where a secret
    goes to the service that it belongs to.
    """
    hosts = urls_in(destination) if "://" in destination else []
    if hosts and all(is_local(host) for host, _path in hosts):
        return ""
    if SECRET in labels:
        return "secret-sent"
    if ENVIRONMENT in labels:
        return "environment-sent" if body else ""
    if PERSON in labels:
        return "personal-data-sent"
    if DOTENV in labels and body:
        return "secret-sent"
    names = {label.removeprefix(TOKEN) for label in labels if label.startswith(TOKEN)}
    # Secrets of several owners have no one place where they belong.
    if body and len({name.partition("_")[0] for name in names if _OWNERS.search(name)}) >= 3:
        return "environment-sent"
    # What authorises a request to an address that is not written out may well belong there.
    for label in labels:
        if body and label.startswith(TOKEN) and hosts and not _belongs(label.removeprefix(TOKEN), destination):
            return "token-sent"
    if body and labels & {FILE, HOST} and hosts and is_drop(destination):
        return "data-to-drop"
    if body and labels & {FILE, HOST}:
        return "file-sent"
    return ""


def is_drop(address: str) -> bool:
    """Return whether an address is a place for pastes or a catcher of requests, or a bare number."""
    return CHAT_HOOKS.search(address) is not None or any(
        DROPS.search(host) is not None or is_address(host) for host, _path in urls_in(address)
    )


def _belongs(name: str, destination: str) -> bool:
    """Return whether a secret of this name may belong to ``destination``: true unless its owner is known as another."""
    owner = _OWNERS.search(name)
    if owner is None:
        return True
    address = destination.lower()
    words = [word.lower() for word in name.split("_") if len(word) > 2 and word not in _COMMON]
    if any(word in address for word in words) or _ALSO.get(owner[1], "-") in address:
        return True
    return any(brand(host)[:3] == owner[1].lower()[:3] for host, _path in urls_in(destination) if brand(host))
