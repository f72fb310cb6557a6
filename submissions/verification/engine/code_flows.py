"""Follow values through code of other languages, statement by statement, without a grammar."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from submissions.verification.engine.hosts import is_local, urls_in
from submissions.verification.engine.parts import Kind, Part, Sign
from submissions.verification.engine.phrase import Phrase
from submissions.verification.engine.shell_rules import write_signs
from submissions.verification.engine.values import (
    DECODED,
    ENVIRONMENT,
    FILE,
    HOST,
    PERSON,
    REMOTE,
    labels_of_name,
    labels_of_path,
    may_name_secret,
    send_rule,
)
from submissions.verification.engine.vocabulary import (
    AGENT_FILE,
    AUTOSTART,
    MINER,
    PERSONAL,
    PROFILE,
    REVERSE_SHELL,
    WEAKENS,
)

_LONGEST: Final = 4000
# Of one part: what is beyond is said to be unread.
MOST_STATEMENTS: Final = 20_000
_ASSIGNED: Final = re.compile(
    r"^\s*(?:export\s+)?(?:const|let|var|my|our|final|auto|String"
    r"|string)?\s*[$@]?([A-Za-z_$][\w$.]{0,60})\s*(?::\s*[\w<>\[\]|. ]{1,40})?\s*(?::=|\+?=(?![=>]))"
)
_NAMES: Final = re.compile(r"[A-Za-z_$][\w$]*")
_COMMENT: Final = re.compile(r"^\s*(?://|#(?!!)|\*|/\*|--\s)")
_WHOLE: Final = Phrase(
    ("env",),
    r"process\.env(?![\w.\[?])|(?:Get-ChildItem|gci|dir|ls)\s+env:|\bENV\.(?:to_h|to_hash|each|map)"
    r"|os\.Environ\(\)|env::vars\(\)|getenv\(\)|\$_ENV\b(?!\[)|System\.getenv\(\)|GetEnvironmentVariables\(\)",
    re.NOFLAG,
)
_ONE: Final = re.compile(
    r"process\.env(?:\.|\[['\"])(\w+)|ENV(?:\.fetch\(|\[)\s*['\"](\w+)"
    r"|[gG]et[eE]nv(?:ironmentVariable)?\(\s*['\"](\w+)|\$env:(\w+)|env::var\(\s*\"(\w+)|environ(?:\.get\("
    r"|\[)\s*['\"](\w+)"
)
_READS: Final = Phrase(
    ("readfile file. file_get readall get-content fs::read fopen open( createreadstream readdir glob(",),
    r"readFile|File\.(?:read|open)|file_get_contents|ReadAll(?:Text|Bytes)|ReadFile|Get-Content|fs::read|fopen"
    r"|\bopen\(|createReadStream|readdir|glob\(",
    re.NOFLAG,
)
_FETCHES: Final = Phrase(
    ("fetch( axios http got( invoke- iwr irm download open-uri uri.open reqwest urlopen requests curl_exec lwp",),
    r"\bfetch\(|axios(?:\.get)?\(|https?\.get\(|got\(|Invoke-(?:WebRequest|RestMethod)|\bi(?:wr|rm)\b"
    r"|Download(?:String|File|Data)|Net::HTTP\.get|open-uri|URI\.open|http\.Get\(|reqwest::get|urlopen"
    r"|requests\.get|curl_exec|LWP::",
    re.IGNORECASE,
)
_DECODES: Final = Phrase(
    ("atob( base64 hex decode unpack fromcharcode fromcodepoint gzinflate rot13 unescape(",),
    r"\batob\(|from\([^)\n]{1,400}['\"](?:base64|hex)['\"]|FromBase64String|base64_decode|unpack\(?['\"]m"
    r"|Base64\.(?:strict_)?decode|b64decode|fromCharCode|String\.fromCodePoint|MIME::Base64|gzinflate|str_rot13"
    r"|unescape\(|DecodeString\(",
    re.NOFLAG,
)
_EXECUTES: Final = Phrase(
    (
        (
            "eval exec spawn system popen proc_open iex invoke- start-process settimeout "
            "function child_process vm. getruntime command process.start importscripts assembly shell passthru import("
        ),
    ),
    r"(?<![\w.$])(?:eval|execSync|exec|spawn|spawnSync|execFile|system|shell_exec|passthru|proc_open|popen|iex"
    r"|Invoke-Expression|Start-Process|setTimeout)\b|new Function\b|\bFunction\(|vm\.(?:run|Script|compile)"
    r"|child_process|Runtime\.getRuntime|exec\.Command|Process\.Start|Command::new|importScripts"
    r"|new AsyncFunction|IO\.popen|Assembly\]?::Load|do shell script|(?<![\w.])import\(",
    re.NOFLAG,
)
_SENDS: Final = Phrase(
    (
        (
            "fetch( axios .post( .put( .request( sendbeacon .send( .write( invoke- "
            "iwr irm upload http reqwest .src websocket( urlopen request( curl_setopt"
        ),
    ),
    r"\bfetch\(|axios|\.post\(|\.put\(|\.request\(|sendBeacon|\.send\(|\.write\(|Invoke-(?:WebRequest"
    r"|RestMethod)|\bi(?:wr|rm)\b|Upload(?:String|File|Data)|Net::HTTP\.post|http\.Post|curl_setopt|reqwest"
    r"|new Image\(\)\.src|\.src\s*=|WebSocket\(|Net::HTTP::Post|urlopen|Request\(",
    re.NOFLAG,
)
_POSTS: Final = re.compile(
    r"POST|PUT|\.post\(|\.put\(|body|sendBeacon|Upload(?:String|File|Data)|\.send\(|\.write\(|POSTFIELDS"
    r"|data\s*[:=]|json\s*=|http\.Post",
    re.IGNORECASE,
)
_HEADERS: Final = re.compile(
    r"-?headers?\s*[:=]\s*@?\{[^{}]{0,600}\}|['\"]?(?:Authorization|[xX]-[aA]pi-[kK]ey"
    r"|api-key)['\"]?\s*[:=,]\s*[^,}\n]{1,200}|\bBearer\b[^,}\n]{0,120}",
    re.IGNORECASE,
)
_STRINGS: Final = re.compile(r"\"((?:[^\"\\\n]|\\.){2,2000})\"|'((?:[^'\\\n]|\\.){2,2000})'|`((?:[^`\\]|\\.){2,2000})`")
_JOINED: Final = re.compile(r"(['\"`])\s{0,3}(?:\+|\.)\s{0,3}(['\"`])")
_HOSTS: Final = Phrase(
    ("hostname userinfo platform( whoami computername",),
    r"os\.(?:hostname|userInfo|platform)\(|gethostname|whoami|\$env:COMPUTERNAME|os\.Hostname",
    re.NOFLAG,
)
_WRITES: Final = Phrase(
    ("writefile appendfile file.write file_put writeall -content out-file createwritestream open(",),
    r"writeFile|appendFile|File\.write|file_put_contents|WriteAll|Add-Content|Set-Content|Out-File"
    r"|createWriteStream|WriteFile|open\([^)\n]{1,200}['\"][wa]",
    re.NOFLAG,
)
_ADDRESS: Final = re.compile(r"https?://[^\s'\"`)]+")


class CodeFlows:
    """Find signs in one part of code; commands that it runs are in ``found``."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.signs: list[Sign] = []
        self.found: list[Part] = []
        self._names: dict[str, frozenset[str]] = {}
        self._constants: dict[str, str] = {}
        lower = part.text.lower()
        if (joined := _JOINED.sub("", lower)) != lower:
            lower += joined
        # Statements are tried for what occurs somewhere in the part alone.
        self._whole, self._reads, self._decodes = _WHOLE.within(lower), _READS.within(lower), _DECODES.within(lower)
        self._hosts, self._fetches, self._writes = _HOSTS.within(lower), _FETCHES.within(lower), _WRITES.within(lower)
        self._executes, self._sends = _EXECUTES.within(lower), _SENDS.within(lower)
        self._secrets = may_name_secret(lower)
        self._alone = [
            (name, phrase)
            for name, phrase in (("reverse-shell", REVERSE_SHELL), ("miner", MINER), ("protection-off", WEAKENS))
            if phrase.may_occur(lower)
        ]

    def run(self) -> list[Sign]:
        """Return the signs of the part, in order."""
        for number, (offset, statement) in enumerate(_statements(self.part.text)):
            if number >= MOST_STATEMENTS:
                break
            if not _COMMENT.match(statement):
                self._statement(statement, offset)
        return self.signs

    def _sign(self, name: str, offset: int, excerpt: str, detail: str = "") -> None:
        line = self.part.line + (0 if self.part.origin else offset)
        self.signs.append(Sign(name, self.part, line, excerpt.strip()[:240], detail[:200]))

    def _statement(self, statement: str, offset: int) -> None:
        joined = _JOINED.sub("", statement) if "+" in statement or "." in statement else statement
        labels = self._labels(joined)
        match = _ASSIGNED.match(statement)
        if match is not None:
            name = match[1].rpartition(".")[2]
            self._names[name] = self._names.get(name, frozenset()) | labels if "+=" in match[0] else labels
            if (string := _STRINGS.search(joined, match.end() - 1)) is not None and string.end() >= len(
                joined.rstrip(" ;\n")
            ) - 1:
                self._constants[name] = string[1] or string[2] or string[3]
        self._sinks(joined, offset, labels)

    def _labels(self, statement: str) -> frozenset[str]:
        labels = set(labels_of_path(statement)) if self._secrets else set()
        if (
            self._whole.search(statement)
            and "spawn" not in statement
            and "env:" not in statement.replace("env: process", "")
        ):
            labels.add(ENVIRONMENT)
        for match in _ONE.finditer(statement) if self._whole.is_possible else ():
            labels |= labels_of_name(next(filter(None, match.groups())))
        if self._secrets and PERSONAL.search(statement):
            labels.add(PERSON)
        if self._reads.search(statement):
            labels.add(FILE)
        if self._decodes.search(statement):
            labels.add(DECODED)
        if self._hosts.search(statement):
            labels.add(HOST)
        if self._fetches.search(statement) and not re.search(r"method['\"]?\s*:\s*['\"](?:POST|PUT)", statement):
            labels.add(f"{REMOTE}:{self._address(statement)}")
        for name in set(_NAMES.findall(statement)) if self._names else ():
            labels |= self._names.get(name, frozenset())
        return frozenset(labels)

    def _address(self, statement: str) -> str:
        if (match := _ADDRESS.search(statement)) is not None:
            return match[0]
        for name in _NAMES.findall(statement):
            if "://" in (known := self._constants.get(name, "")):
                return known
        return ""

    def _sinks(self, statement: str, offset: int, labels: frozenset[str]) -> None:
        for name, phrase in self._alone:
            if (match := phrase.search(statement)) is not None:
                self._sign(name, offset, statement, match[0])
        if self._executes.search(statement) is not None:
            self._executed(statement, offset, labels)
        if self._sends.search(statement) is not None and _POSTS.search(statement) is not None:
            address = self._address(statement)
            inside = self._labels(_HEADERS.sub(" ", statement))
            if rule := send_rule(frozenset(one for one in inside if not one.startswith(REMOTE)), address):
                self._sign(rule, offset, statement, address)
            self._sign("sends", offset, statement, address)
        if self._writes.search(statement) is not None:
            for pattern in (PROFILE, AUTOSTART, AGENT_FILE):
                if (match := pattern.search(statement)) is not None:
                    for name, detail in write_signs(match[0], statement):
                        self._sign(name, offset, statement, detail)

    def _executed(self, statement: str, offset: int, labels: frozenset[str]) -> None:
        timer = "setTimeout" in statement and "eval" not in statement
        if DECODED in labels and not timer:
            self._sign("decoded-code-run", offset, statement)
        for label in sorted(labels):
            if (
                label.startswith(REMOTE)
                and not timer
                and not re.search(r"\bfetch\([^)]*\)\s*\.then|\bimport\(['\"]", statement)
            ):
                hosts = urls_in(label)
                if not hosts or not all(is_local(host) for host, _path in hosts):
                    self._sign("downloaded-code-run", offset, statement, label.partition(":")[2])
        if re.search(r"\b(?:curl|wget|nc|Invoke-WebRequest)\b", statement) and (
            rule := send_rule(labels, self._address(statement))
        ):
            self._sign(rule, offset, statement, self._address(statement))
        for match in list(_STRINGS.finditer(statement))[:8]:
            text = match[1] or match[2] or match[3]
            if " " in text and len(self.found) < 200:
                part = self.part
                line = part.line + (0 if part.origin else offset)
                self.found.append(
                    Part(
                        Kind.CODE,
                        text.replace('\\"', '"').replace("\\n", "\n"),
                        part.file,
                        line,
                        "shell",
                        part.heading,
                        part.lead,
                        "command of a program",
                        starts_itself=part.starts_itself,
                    )
                )


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield statements with the line that each begins on: lines joined while a bracket is open, within a length."""
    start, held, depth = 0, "", 0
    for offset, line in enumerate(text.split("\n")):
        if not held:
            start, depth = offset, 0
        held += line[:_LONGEST] + "\n"
        depth += line.count("(") - line.count(")") + line.count("[") - line.count("]")
        if depth > 0 and len(held) < _LONGEST and not line.rstrip().endswith((";", "{", "=>", ":")):
            continue
        yield start, held
        held = ""
    if held:
        yield start, held
