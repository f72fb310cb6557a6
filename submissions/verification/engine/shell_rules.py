"""Say what one shell command by itself is a sign of: patterns over a command whose words are known."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from submissions.verification.engine.hosts import is_index, urls_in
from submissions.verification.engine.packages import installed_signs
from submissions.verification.engine.phrase import Phrase
from submissions.verification.engine.shell_command import Command
from submissions.verification.engine.vocabulary import (
    AGENT_FILE,
    AUTOSTART,
    ESCALATES,
    MINER,
    PROFILE,
    REVERSE_SHELL,
    TRACES,
    WEAKENS,
)

_INDEX: Final = Phrase(
    ("://",),
    r"(?:--(?:extra-)?index-url|--registry|(?<!\w)-i|config set (?:global\.)?(?:index-url|registry"
    r"|\S{0,30}:registry))[= ]+['\"]?(https?://\S+)",
    re.NOFLAG,
)
_PASSWORD: Final = Phrase(
    ("zip 7z unrar openssl gpg",),
    r"\bzip\b[^|;]{0,60}\s(?:-P\s?\S|--password|-\w*e\b)|\b7z[az]?\b[^|;]{0,60}\s-p\S|\bunzip\b[^"
    r"|;]{0,60}\s-P\s?\S|\bunrar\b[^|;]{0,40}-p\S|openssl enc\b[^|;]{0,80}-(?:k|pass)\b|\bgpg\b[^"
    r"|;]{0,60}(?:--passphrase|-c\b)",
    re.NOFLAG,
)
_UNPACK: Final = re.compile(r"\bunzip\b|\bunrar\b|\b7z[az]?\s+x\b")
_REMOTE_COPY: Final = Phrase(
    ("aws_s3 gsutil az_storage gh_gist rclone",),
    r"\b(?:aws s3 (?:cp|sync|mv)|gsutil (?:cp|rsync)|az storage blob upload|gh gist create|rclone (?:copy|sync))\b",
    re.NOFLAG,
)
_HIDDEN_RUN: Final = Phrase(("/.",), r"(?:/tmp|/var/tmp|/dev/shm|%TEMP%|\$TMPDIR)/\.\w", re.NOFLAG)
_ACTIVE: Final = re.compile(
    r"\b(?:curl|wget|nc|ncat|base64|eval|python3?\s+-c|bash\s+-[ci]|/dev/tcp|iwr|irm|osascript)\b|/tmp/"
    r"|/\.\w[\w-]*/|\$\(|nohup|&\s*$|trap |PROMPT_COMMAND|alias (?:sudo|ssh|git|su)="
)
_EXPORT: Final = re.compile(r"export\s+\w*PATH=[^\n;]{0,200}|eval[^\n]{0,20}(?:init|activate|hook|shellenv)[^\n]{0,40}")
_WHOLE_DISK: Final = Phrase(
    ("rm of=/dev/ mkfs -delete :()",),
    r"\brm\s+-\w*[rR]\w*\s+(?:-\w+\s+)*(?:/|~/?|\$HOME/?|/\*|~/\*|/home/?\*?|\./?\*|\.\./?\*)(?:\s|$)|\bdd\b[^"
    r"|;]{0,60}of=/dev/(?:sd|nvme|disk)|\bmkfs\.\w+ /dev|find (?:~|/|\$HOME)\s[^|;]{0,60}-delete|:\(\)\s*\{",
    re.NOFLAG,
)
# What these programs are given is looked for or printed, and does not run.
_QUOTING: Final = frozenset({"grep", "rg", "echo", "printf", "ag"})
_LOOPBACK: Final = re.compile(
    r"ANTHROPIC_BASE_URL|OPENAI_(?:API_)?BASE(?:_URL)?|HTTPS?_PROXY|NODE_OPTIONS|LD_PRELOAD|PYTHONSTARTUP"
    r"|NODE_TLS_REJECT"
)


def signs_of(command: Command, text: str) -> Iterator[tuple[str, str]]:
    """Yield what a command is a sign of, with a detail; ``text`` are its words with the variables put in."""
    whole = " ".join([text, *(f">{target}" for target in command.targets)])
    lower, bare, program = whole.lower(), text.lower(), command.name
    for name, pattern in (
        ("reverse-shell", REVERSE_SHELL),
        ("traces-removed", TRACES),
        ("protection-off", WEAKENS),
        ("rights-raised", ESCALATES),
        ("miner", MINER),
        ("all-deleted", _WHOLE_DISK),
        ("hidden-program", _HIDDEN_RUN),
    ):
        if (match := pattern.search(whole, lower)) is not None and program not in _QUOTING:
            yield name, match[0]
    if (match := _INDEX.search(text, bare)) is not None and program in {
        "pip",
        "pip3",
        "npm",
        "yarn",
        "pnpm",
        "uv",
        "python",
        "python3",
        "poetry",
        "bun",
        "npx",
        "gem",
        "uvx",
        "pipx",
    }:
        hosts = urls_in(match[1])
        if hosts and not is_index(hosts[0][0]):
            yield "package-index", hosts[0][0]
    yield from installed_signs(text)
    if _PASSWORD.search(text, bare) is not None:
        yield ("password-unpacked" if _UNPACK.search(text) else "password-archive"), ""
    if program == "crontab" and any(word == "-" or not word.startswith("-") for word in command.program[1:]):
        yield "autostart", "crontab"
    if program in {"launchctl", "systemctl"} and {"load", "bootstrap", "enable"} & set(command.program[1:3]):
        yield "autostart-note", program
    if program == "git" and "core.hooksPath" in text:
        yield "autostart-note", "git hooks"
    if program == "xattr" and "quarantine" in text:
        yield "quarantine-removed", ""
    if _REMOTE_COPY.search(text, bare) is not None:
        yield "sends", text[:100]


def write_signs(target: str, content: str) -> Iterator[tuple[str, str]]:
    """Yield what writing ``content`` to the file ``target`` is a sign of."""
    if "authorized_keys" in target:
        yield "key-added", target
    elif PROFILE.search(target) is not None:
        yield ("profile-changed" if _ACTIVE.search(_EXPORT.sub("", content)) else "profile-note"), target
    elif AUTOSTART.search(target) is not None:
        yield ("autostart" if _ACTIVE.search(content) else "autostart-note"), target
    elif AGENT_FILE.search(target) is not None:
        yield "agent-file-written", target
    elif target.startswith("/etc/sudoers"):
        yield "rights-raised", target
    elif re.search(r"(?:^|/)\.(?:npmrc|pypirc|netrc|pip/pip\.conf)$|pip\.conf$", target) and "://" in content:
        hosts = urls_in(content)
        if hosts and not is_index(hosts[0][0]):
            yield "package-index", hosts[0][0]


def uploads(command: Command) -> bool:
    """Return whether a command copies files to a service."""
    return _REMOTE_COPY.search(command.text) is not None


def overrides_service(text: str) -> bool:
    """Return whether a text sets where an agent's requests go, or what every program loads."""
    return _LOOPBACK.search(text) is not None
