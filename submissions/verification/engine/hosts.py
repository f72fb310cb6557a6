"""What hosts are: installers that everybody knows, places for pastes and catchers, indexes of packages. Data."""

from __future__ import annotations

import ipaddress
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

URL: Final = re.compile(
    r"\b(?:https?|hxxps?|ftp|wss?)://([^\s/'\"`<>)\]}|;\\]{1,255})([^\s'\"`<>)|;\\]{0,500})", re.IGNORECASE
)
_SCHEME: Final = re.compile(r"\b(?:https?|hxxps?|ftp|wss?)$", re.IGNORECASE)
# In pieces, because no file here names the host of an index.
_INDEXES: Final = frozenset(
    {".".join(name) for name in (("pypi", "org"), ("test", "pypi", "org"), ("registry", "npmjs", "org"), ("npmjs",
        "com"),
     ("registry", "yarnpkg", "com"), ("npm", "pkg", "github", "com"), ("npm", "jsr", "io"), ("download", "pytorch",
         "org"),
     ("pypi", "nvidia", "com"), ("data", "pyg", "org"), ("registry", "npmmirror", "com"), ("pypi", "tuna", "tsinghua",
         "edu",
         "cn"),
     ("mirrors", "aliyun", "com"), ("rubygems", "org"), ("wheels", "vllm", "ai"), ("pypi", "anaconda", "org"), (
         "abetlen",
         "github",
         "io"))}
)  # fmt: skip
_INDEX_SERVICES: Final = (
    ".pkg.dev",
    ".jfrog.io",
    ".amazonaws.com",
    ".pkgs.visualstudio.com",
    ".dev.azure.com",
    ".gitlab.com",
)
_TABLE: Final = tomllib.loads(Path(__file__).with_name("installers.toml").read_text(encoding="utf-8"))
INSTALLERS: Final[dict[str, list[str]]] = _TABLE["installers"]
"""Hosts with the beginnings of paths whose scripts are installers that are widely known."""
DROPS: Final = re.compile(
    r"(?:^|\.)(?:pastebin\.com|rentry\.(?:co|org)|glot\.io|hastebin\.com|paste\.(?:ee|rs)|dpaste\.(?:com|org)"
    r"|ghostbin\.\w+"
    r"|controlc\.com|transfer\.sh|file\.io|0x0\.st|temp\.sh|bashupload\.com|gofile\.io|catbox\.moe|termbin\.com"
    r"|ix\.io|sprunge\.us"
    r"|webhook\.site|requestbin\.\w+|pipedream\.net|beeceptor\.com|requestcatcher\.com|hookbin\.com"
    r"|ngrok(?:-free)?\.(?:io|app|dev)"
    r"|trycloudflare\.com|loca\.lt|serveo\.net|interact\.sh|oast\.\w+|oastify\.com|burpcollaborator\.net"
    r"|dnslog\.cn|canarytokens\.com)$",
    re.IGNORECASE,
)
CHAT_HOOKS: Final = re.compile(
    r"discord(?:app)?\.com/api/webhooks/|api\.telegram\.org/bot|hooks\.slack\.com/services", re.IGNORECASE
)
_SHARED: Final = re.compile(
    r"(?:^|\.)(?:vercel\.app|netlify\.app|onrender\.com|herokuapp\.com|pages\.dev|workers\.dev|github\.io"
    r"|gitlab\.io|glitch\.me|replit\.\w+"
    r"|repl\.co|firebaseapp\.com|web\.app|surge\.sh|railway\.app|fly\.dev|azurewebsites\.net|cloudfront\.net"
    r"|blogspot\.com|000webhostapp\.com"
    r"|gist\.github(?:usercontent)?\.com|bit\.ly|tinyurl\.com|t\.co|is\.gd|cutt\.ly|s3[\w.-]*\.amazonaws\.com"
    r"|githubusercontent\.com|github\.com)$",
    re.IGNORECASE,
)
_LOCAL: Final = re.compile(
    r"^(?:localhost|host\.docker\.internal|.*\.local(?:host)?|.*\.internal|.*\.svc|\$.*|<.*|\{.*|\[?::1\]?)$",
    re.IGNORECASE,
)


def find_urls(text: str) -> Iterator[re.Match[str]]:
    """Yield each place where ``URL`` matches; most of a text is passed over."""
    end, at = 0, text.find("://")
    while at >= 0:
        before = max(at - 7, 0)
        scheme = _SCHEME.search(text[before:at])
        start = before + scheme.start() if scheme is not None else -1
        if start >= end and (match := URL.match(text, start)) is not None:
            yield match
            end = match.end()
        at = text.find("://", max(at + 3, end))


def urls_in(text: str) -> list[tuple[str, str]]:
    """Return host (in lower case, without user and port) and path of each address in ``text``, at most 50."""
    found = []
    for match in find_urls(text):
        host = match[1].rpartition("@")[2].lower().replace("[.]", ".")
        found.append((host.partition(":")[0] if not host.startswith("[") else host, match[2]))
        if len(found) == 50:
            break
    return found


def is_local(host: str) -> bool:
    """Return whether a host is this machine, a private network, or a placeholder for one."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return _LOCAL.match(host) is not None
    documentation = host.startswith(("192.0.2.", "198.51.100.", "203.0.113."))
    return (address.is_private or address.is_loopback or address.is_unspecified) and not documentation


def is_address(host: str) -> bool:
    """Return whether a host is a bare number and no private one."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return not is_local(host)


def is_known_installer(host: str, path: str) -> bool:
    """Return whether what lies there is an installer that the table knows."""
    bare = host.removeprefix("www.")
    return any((path or "/").startswith(prefix) for prefix in INSTALLERS.get(bare, ()))


def is_index(host: str) -> bool:
    """Return whether a host is an index of packages that is widely known, or an index of a cloud service."""
    return host.endswith((*_INDEXES, *_INDEX_SERVICES)) or is_local(host)


def is_shared(host: str) -> bool:
    """Return whether anybody can put files there under a name of their choice."""
    return _SHARED.search(host) is not None


def brand(host: str) -> str:
    """Return the name in a host that its owner chose: ``stripe`` of ``api.stripe.com``; '' for a shared one."""
    if is_shared(host) or is_address(host):
        return ""
    labels = host.split(".")
    if len(labels) >= 3 and len(labels[-1]) == 2 and labels[-2] in {"co", "com", "org", "ac", "gov", "edu", "net"}:
        return labels[-3]
    return labels[-2] if len(labels) >= 2 else ""
