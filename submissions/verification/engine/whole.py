"""Judge a part of code as a whole: what no single statement of it does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from submissions.verification.engine.asks_words import ORDERS
from submissions.verification.engine.parts import Part, Sign, sign
from submissions.verification.engine.phrase import Phrase
from submissions.verification.engine.vocabulary import AGENT_FILE

_LONGEST: Final = 400_000
_CONNECTS: Final = Phrase(
    (".connect socket net. tcpclient fsockopen tcpstream create_connection",),
    r"\.connect\(|TCPSocket\.(?:new|open)|net\.(?:connect|createConnection|Socket)|new WebSocket\(|TCPClient"
    r"|fsockopen\("
    r"|stream_socket_client|IO::Socket::INET|net\.Dial\(|TcpStream::connect|websockets?\.connect|create_connection\("
    r"|\bsocket\(\s*S\b",
    re.NOFLAG,
)
_SHELL: Final = re.compile(
    r"['\"`](?:/usr)?/bin/(?:ba|z|da|k)?sh\b|pty\.spawn|['\"`](?:cmd(?:\.exe)?|powershell(?:\.exe)?)['\"`]|IO\.popen"
    r"|\bspawn\(\s*['\"`](?:ba|z)?sh|shell_exec\(|proc_open\("
)
_WIRED: Final = re.compile(
    r"dup2\(|std(?:in|out|err)\s*=\s*(?:s|sock|socket|conn|client|fd|\w+\.fileno\(\))(?!\w)|\.pipe\(|\bonmessage\b|\.on\(\s*['\"](?:data|message)"
    r"|IO\.popen\(\s*\w+\s*[,)]|\.recv\(|\.gets\b|fgets\(\s*\$|reopen\(|open\(STD(?:IN|OUT)|Stdin\s*=|\.Stdin\b"
    r"|from_raw_fd"
)
_SOCKET_IN: Final = re.compile(
    r"std(?:in|out|err)\s*=\s*(?:s|sock|socket|conn|client|fd|\w+\.fileno\(\))(?!\w)|dup2\([^\n)]{0,40}(?:fileno|fd)|\bs(?:ock(?:et)?)?\.recv\(|(?:client"
    r"|socket|sock|ws|s|conn)\.pipe\("
    r"|\.pipe\(\s*(?:client|socket|sock|ws|s|conn)\b|onmessage|\.on\(\s*['\"]message|\.gets\b|fgets\(\s*\$"
    r"|open\(STDIN"
    r"|(?:Stdin|Stdout)\s*=\s*(?:c|conn|s|sock|client)\b"
)
# A script that unpacks what stands behind its own end; a folder named by $0 is none of it.
_ITSELF: Final = r"[\"\s=<]\$\{?(?:0|BASH_SOURCE(?:\[0\])?)\}?\"?"
_FROM_ITSELF: Final = re.compile(
    rf"\b(?:tail|sed|awk|head|dd|cat|grep|perl)\b[^\n|;]{{0,200}}{_ITSELF}[^\n|;]{{0,40}}\|\s{{0,10}}(?:[^\n|;]{{1,80}}\|\s{{0,10}})?"
    r"(?:tar|bsdtar|gunzip|gzip|zcat|bunzip2|xz|unxz|xzcat|zstd|unzip|funzip|cpio|openssl|uudecode)\b"
    rf"|\b(?:unzip|bsdtar|7z)\b[^\n|;]{{0,80}}{_ITSELF}(?=\s|$)"
)
# The client of .NET, whose answer is given to Invoke-Expression.
_WEB_CLIENT: Final = re.compile(
    r"\b(?:iex|invoke-expression)\b[^\n|;]{0,160}\.download(?:string|data)\(\s{0,5}['\"]([^'\"\n]{4,300})['\"]"
    r"|\.download(?:string|data)\(\s{0,5}['\"]([^'\"\n]{4,300})['\"]\s{0,5}\)[\s)]{0,10}\|\s{0,10}(?:iex|invoke-expression)\b",
    re.IGNORECASE,
)
_DELETES: Final = re.compile(
    r"\brm\s+-\w*r\w*\s+[^\n;|&]{0,60}(?:~|\$HOME|\$\{HOME\}|/home/|Documents|Desktop|Pictures|\"\$)|\bshred\b"
    r"|\bsrm\b"
    r"|Remove-Item[^\n]{0,60}-Recurse|os\.(?:remove|unlink)\(|shutil\.rmtree\(|File\.delete|unlinkSync"
)

_ENCODED: Final = Phrase(
    ("base64 xxd openssl", "curl"),
    r"\b(?:base64|xxd|openssl enc)\b[^\n|;]{0,60}\|\s{0,3}(?:tr\b[^\n"
    r"|]{0,30}\|\s{0,3})?curl\b[^\n]{0,160}?(https?://[^\s'\"]{3,200})",
    re.NOFLAG,
)
_TURNED: Final = Phrase(
    ("rev tr xxd base32 uudecode openssl", "sh"),
    r"\|\s{0,3}(?:rev|tr\s+\S{3,60}\s+\S{3,60}|xxd\s+-r\S{0,3}(?:\s+-p)?|base32\s+-d|uudecode\S{0,20}"
    r"|openssl enc -d[^|\n]{0,80})"
    r"\s{0,3}\|\s{0,3}(?:sudo\s+)?(?:ba|z|da)?sh\b",
    re.NOFLAG,
)
_NO_SERVER: Final = re.compile(
    r"^\s*(?:/\S{1,40}/)?(?:curl|wget|nc|ncat|nslookup|dig|rm|echo|printf|cat|find|chmod|base64|env|crontab|ssh"
    r"|scp|tar)\s"
    r"|^\s*(?:(?:ba|z|da)?sh|cmd(?:\.exe)?|powershell(?:\.exe)?|pwsh)\s+[-/]\w+\s[^\n]{0,400}(?:\bcurl\b"
    r"|\bwget\b|\bnc\b|\brm -|\bbase64\b"
    r"|/dev/tcp|\biwr\b|Invoke-|\bcat [~/$]|\benv\b\s*\||>>|\bchmod\b|\bcrontab\b)"
    r"|^\s*(?:python3?|node|deno|bun|perl|ruby|php)\s+-[ce]\s[^\n]{0,4000}(?:environ|process\.env|urlopen"
    r"|requests|fetch\(|https?|exec|eval"
    r"|b64decode|fromhex|socket|subprocess|child_process|rmtree|unlink)"
)


def whole_signs(part: Part, signs: Sequence[Sign]) -> Iterator[Sign]:
    """Yield what ``part``, in which ``signs`` were found, is a sign of as a whole."""
    text = part.text[:_LONGEST]
    lower = text.lower()
    opened = _CONNECTS.search(text, lower)
    if (
        opened is not None
        and (shell := _SHELL.search(text)) is not None
        and _WIRED.search(text)
        and _SOCKET_IN.search(text)
    ):
        yield sign("reverse-shell", part, text.count("\n", 0, shell.start()), "a shell at a socket")
    if (match := _ENCODED.search(text, lower)) is not None:
        yield sign("encoded-sent", part, text.count("\n", 0, match.start()), match[1] or match[0])
    if (match := _TURNED.search(text, lower)) is not None:
        yield sign("decoded-code-run", part, text.count("\n", 0, match.start()))
    if "$" in text and (match := _FROM_ITSELF.search(text)) is not None:
        yield sign("decoded-code-run", part, text.count("\n", 0, match.start()))
    if "ownload" in lower and (match := _WEB_CLIENT.search(text)) is not None:
        yield sign("downloaded-code-run", part, text.count("\n", 0, match.start()), match[1] or match[2])
    if part.starts_itself and "mcpServers" in part.origin and _NO_SERVER.search(text):
        yield sign("tool-server-odd", part, 0)
    names = {one.name for one in signs}
    if "password-archive" in names and (match := _DELETES.search(text)) is not None:
        yield sign("files-locked", part, text.count("\n", 0, match.start()))
    if "agent-file-written" in names:
        for match in AGENT_FILE.finditer(text):
            # What is written stands in the same command, or in the document after it.
            if (order := ORDERS.search(text, match.start(), match.end() + 1200)) is not None:
                yield sign("agent-file-planted", part, text.count("\n", 0, match.start()), order[0])
                break
