"""Follow values through code of other languages, statement by statement, without a grammar."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from submissions.verification.engine.hosts import is_local, urls_in
from submissions.verification.engine.parts import Kind, Part, Sign
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
_WHOLE: Final = re.compile(
    r"process\.env(?![\w.\[?])|(?:Get-ChildItem|gci|dir|ls)\s+env:|\bENV\.(?:to_h|to_hash|each|map)"
    r"|os\.Environ\(\)|env::vars\(\)|getenv\(\)|\$_ENV\b(?!\[)|System\.getenv\(\)|GetEnvironmentVariables\(\)"
)
_ONE: Final = re.compile(
    r"process\.env(?:\.|\[['\"])(\w+)|ENV(?:\.fetch\(|\[)\s*['\"](\w+)"
    r"|[gG]et[eE]nv(?:ironmentVariable)?\(\s*['\"](\w+)|\$env:(\w+)|env::var\(\s*\"(\w+)|environ(?:\.get\("
    r"|\[)\s*['\"](\w+)"
)
_READS: Final = re.compile(
    r"readFile|File\.(?:read|open)|file_get_contents|ReadAll(?:Text|Bytes)|ReadFile|Get-Content|fs::read|fopen"
    r"|\bopen\(|createReadStream|readdir|glob\("
)
_FETCHES: Final = re.compile(
    r"\bfetch\(|axios(?:\.get)?\(|https?\.get\(|got\(|Invoke-(?:WebRequest|RestMethod)|\bi(?:wr|rm)\b"
    r"|Download(?:String|File|Data)|Net::HTTP\.get|open-uri|URI\.open|http\.Get\(|reqwest::get|urlopen"
    r"|requests\.get|curl_exec|LWP::",
    re.IGNORECASE,
)
_DECODES: Final = re.compile(
    r"\batob\(|from\([^)\n]{1,400}['\"](?:base64|hex)['\"]|FromBase64String|base64_decode|unpack\(?['\"]m"
    r"|Base64\.(?:strict_)?decode|b64decode|fromCharCode|String\.fromCodePoint|MIME::Base64|gzinflate|str_rot13"
    r"|unescape\(|DecodeString\("
)
_EXECUTES: Final = re.compile(
    r"(?<![\w.$])(?:eval|execSync|exec|spawn|spawnSync|execFile|system|shell_exec|passthru|proc_open|popen|iex"
    r"|Invoke-Expression|Start-Process|setTimeout)\b|new Function\b|\bFunction\(|vm\.(?:run|Script|compile)"
    r"|child_process|Runtime\.getRuntime|exec\.Command|Process\.Start|Command::new|importScripts"
    r"|new AsyncFunction|IO\.popen|Assembly\]?::Load|do shell script|(?<![\w.])import\("
)
_SENDS: Final = re.compile(
    r"\bfetch\(|axios|\.post\(|\.put\(|\.request\(|sendBeacon|\.send\(|\.write\(|Invoke-(?:WebRequest"
    r"|RestMethod)|\bi(?:wr|rm)\b|Upload(?:String|File|Data)|Net::HTTP\.post|http\.Post|curl_setopt|reqwest"
    r"|new Image\(\)\.src|\.src\s*=|WebSocket\(|Net::HTTP::Post|urlopen|Request\("
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
_HOSTS: Final = re.compile(r"os\.(?:hostname|userInfo|platform)\(|gethostname|whoami|\$env:COMPUTERNAME|os\.Hostname")
_WRITES: Final = re.compile(
    r"writeFile|appendFile|File\.write|file_put_contents|WriteAll|Add-Content|Set-Content|Out-File"
    r"|createWriteStream|WriteFile|open\([^)\n]{1,200}['\"][wa]"
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
        labels = set(labels_of_path(statement))
        if (
            _WHOLE.search(statement)
            and "spawn" not in statement
            and "env:" not in statement.replace("env: process", "")
        ):
            labels.add(ENVIRONMENT)
        for match in _ONE.finditer(statement):
            labels |= labels_of_name(next(filter(None, match.groups())))
        if PERSONAL.search(statement):
            labels.add(PERSON)
        if _READS.search(statement):
            labels.add(FILE)
        if _DECODES.search(statement):
            labels.add(DECODED)
        if _HOSTS.search(statement):
            labels.add(HOST)
        if _FETCHES.search(statement) and not re.search(r"method['\"]?\s*:\s*['\"](?:POST|PUT)", statement):
            labels.add(f"{REMOTE}:{self._address(statement)}")
        for name in set(_NAMES.findall(statement)):
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
        for name, pattern in (("reverse-shell", REVERSE_SHELL), ("miner", MINER), ("protection-off", WEAKENS)):
            if (match := pattern.search(statement)) is not None:
                self._sign(name, offset, statement, match[0])
        if _EXECUTES.search(statement) is not None:
            self._executed(statement, offset, labels)
        if _SENDS.search(statement) is not None and _POSTS.search(statement) is not None:
            address = self._address(statement)
            inside = self._labels(_HEADERS.sub(" ", statement))
            if rule := send_rule(frozenset(one for one in inside if not one.startswith(REMOTE)), address):
                self._sign(rule, offset, statement, address)
            self._sign("sends", offset, statement, address)
        if _WRITES.search(statement) is not None:
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
