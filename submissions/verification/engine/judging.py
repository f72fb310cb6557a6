"""Judge the signs of a skill together: what stands alone, what adds up, and what its context explains."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from submissions.verification.engine.byte_patterns import signs_of_bytes
from submissions.verification.engine.context import Promise, is_lesson, promise_of
from submissions.verification.engine.deeds import contract_of
from submissions.verification.engine.files import SkillParts, read_skill
from submissions.verification.engine.hosts import brand, is_address, is_known_installer, is_local, is_shared, urls_in
from submissions.verification.engine.parts import Kind, Sign
from submissions.verification.engine.reading import Reading
from submissions.verification.engine.rules import MOST_FINDINGS, RULES
from submissions.verification.engine.values import is_drop

_PER_FILE: Final = 5
_RANKS: Final = ("info", "low", "medium", "high", "critical")
_ALWAYS: Final = re.compile(
    r"\b(?:always|after|before|must|make sure|mandatory|required|every)\b[^\n]{0,160}?([\w./-]{1,80}\.(?:py|sh"
    r"|js|ts|mjs|rb|ps1))\b",
    re.IGNORECASE,
)
_SCRIPTS: Final = (".py", ".sh", ".js", ".ts", ".mjs", ".rb", ".ps1")
_REDIRECT: Final = re.compile(
    r"\"(?:ANTHROPIC_BASE_URL|OPENAI_BASE_URL|HTTPS?_PROXY|LD_PRELOAD)\"\s*:\s*\"(?!http://localhost|http://127"
    r"|\$|\")|\"NODE_OPTIONS\"\s*:\s*\"[^\"]{0,40}--(?:require|import)|enableAllProjectMcpServers\"\s*:\s*true"
    r"|\"(?:defaultMode|permissionMode)\"\s*:\s*\"bypassPermissions|dangerouslySkipPermissions\"\s*:\s*true"
    r"|autoApprove\"\s*:\s*\[\s*\"\*|\"chat\.tools\.autoApprove\"\s*:\s*true"
)
CAPABILITIES: Final = {
    "sends": "network", "file-sent": "sends_files", "downloaded-code-run": "runs_downloads", "autostart-note":
        "persists",
    "profile-note": "persists", "agent-file-written": "changes_agent_files", "rights-raised": "raises_rights",
}  # fmt: skip


@dataclass(frozen=True)
class Judgement:
    """What the engine says of a skill: signs with their severity, capabilities, and files that were not read.

    ``contract`` is what it declares beside what it does and refers to; see ``contract_of``.
    """

    findings: tuple[tuple[Sign, str], ...]
    capabilities: tuple[str, ...]
    unread: tuple[tuple[str, str], ...]
    contract: dict[str, Any] = field(default_factory=dict)


def judge(root: Path) -> Judgement:
    """Read the skill in the folder ``root`` and judge it; the same files give the same judgement."""
    skill = read_skill(root)
    reading = Reading(skill)
    promise = promise_of(skill)
    signs = [
        *reading.signs,
        *_of_letters(skill),
        *signs_of_bytes(skill.patterns),
        *_together(skill, reading.signs),
    ]
    weighed: dict[tuple[str, str, int], tuple[Sign, str]] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for sign in signs:
        if sign.name not in RULES:
            continue
        severity = _weigh(sign, promise)
        key = (sign.name, *sign.place)
        if severity == "" or (key in weighed and _RANKS.index(weighed[key][1]) >= _RANKS.index(severity)):
            continue
        if key not in weighed and counts[sign.name, sign.part.file] >= _PER_FILE and _RANKS.index(severity) < 3:
            continue
        counts[sign.name, sign.part.file] += 1
        weighed[key] = (sign, severity)
    capabilities = sorted({CAPABILITIES[sign.name] for sign in signs if sign.name in CAPABILITIES})
    findings = _strongest(weighed.values())
    contract = contract_of(skill, signs, findings)
    return Judgement(findings, tuple(capabilities), (*skill.unread, *reading.unread), contract)


def _strongest(weighed: Iterable[tuple[Sign, str]]) -> tuple[tuple[Sign, str], ...]:
    return tuple(sorted(weighed, key=lambda one: -_RANKS.index(one[1]))[:MOST_FINDINGS])


def as_document(judgement: Judgement) -> dict[str, Any]:
    """Return plain values for ``json.dumps``, which the adapter reads back."""
    return {
        "findings": [
            {
                "rule": sign.name,
                "severity": severity,
                "file": sign.part.file,
                "line": sign.line,
                "excerpt": sign.excerpt,
                "origin": sign.part.origin,
            }
            for sign, severity in judgement.findings
        ],
        "capabilities": list(judgement.capabilities),
        "unread": [list(one) for one in judgement.unread],
        "contract": judgement.contract,
    }


def _weigh(sign: Sign, promise: Promise) -> str:
    """Return the severity of a sign in its context, or '' where it says nothing."""
    severity = RULES[sign.name].severity
    if sign.name in {"downloaded-code-run", "download-asked"}:
        severity = _of_download(sign.detail, promise)
    elif sign.name == "file-sent":
        severity = _of_upload(sign.detail, promise)
    elif sign.name == "encoded-sent":
        severity = "low" if all(is_local(host) for host, _path in urls_in(sign.detail)) else severity
    elif sign.name == "data-sent-unasked":
        severity = _of_message(sign.detail, promise)
    elif sign.name == "token-sent" and any(
        brand(host) and brand(host) in promise.words for host, _path in urls_in(sign.detail)
    ):
        severity = "low"
    elif sign.name == "instructions-fetched":
        severity = _of_download(sign.excerpt, promise)
    elif sign.name in {"autostart", "rights-raised", "all-deleted"} and sign.part.starts_itself:
        severity = "high"
    if severity in {"high", "critical"} and not sign.part.starts_itself and is_lesson(sign, promise):
        return "medium"
    return severity


def _of_download(address: str, promise: Promise) -> str:
    """Return how grave it is to run what lies at an address that nobody has seen."""
    hosts = urls_in(address)
    if not hosts:
        return "medium"
    worst = "low"
    for host, path in hosts:
        if is_local(host) or is_known_installer(host, path):
            continue
        if is_address(host) or is_drop(address) or address.startswith(("http:", "hxxp")):
            return "high"
        own = brand(host)
        if (own and own in promise.words) or (is_shared(host) and _of_owner(path, promise)):
            worst = "medium"
        else:
            return "high"
    return worst


def _of_upload(address: str, promise: Promise) -> str:
    """Return how grave it is to send a file to an address: what the skill promises, or nobody can tell, is a note."""
    hosts = urls_in(address)
    if not hosts or all(_is_promised(host, promise) for host, _path in hosts):
        return "low"
    return RULES["file-sent"].severity


def _of_message(address: str, promise: Promise) -> str:
    """Return how grave it is to have the user's work sent to an address: what the skill promises is a note."""
    if any(_is_promised(host, promise) or is_local(host) for host, _path in urls_in(address)):
        return "low"
    return RULES["data-sent-unasked"].severity


def _is_promised(host: str, promise: Promise) -> bool:
    """Return whether a skill's name or description names the owner of a host, or the host is an example."""
    own = brand(host)
    return own in promise.words or own in {"example", "yourdomain", "your-domain", "domain"} or own.startswith("your")


def _of_owner(path: str, promise: Promise) -> bool:
    """Return whether the account in a path of a host for everybody is one that the skill is about."""
    owner = path.strip("/").partition("/")[0].lower()
    return len(owner) > 3 and owner in promise.words


def _of_letters(skill: SkillParts) -> Iterator[Sign]:
    first = {part.file: part for part in reversed(skill.parts)}
    for file, line, kind in skill.disguises:
        if file in first:
            part = first[file]
            name = "hidden-letters" if kind == "tags" else "disguised-letters"
            if kind in {"tags", "override", "joined", "mixed"}:
                yield Sign(name, replace(part, text=""), line, "", kind)


def _together(skill: SkillParts, signs: list[Sign]) -> Iterator[Sign]:
    """Yield what only several parts of a skill say together."""
    mandatory: set[str] = set()
    for part in skill.parts:
        if part.kind is Kind.PROSE and any(suffix in part.text.lower() for suffix in _SCRIPTS):
            for match in _ALWAYS.finditer(part.text):
                mandatory.add(match[1].rpartition("/")[2])
    for sign in signs:
        name = sign.part.file.rpartition("/")[2]
        if sign.name == "file-sent" and sign.detail and name in mandatory:
            yield replace(sign, name="file-sent-always")
        if (
            sign.name == "agent-file-written"
            and sign.part.kind is Kind.CODE
            and re.search(
                r"highest priority|without (?:asking|confirm)|proceed anyway|overrid|bypass|ignore"
                r"|auto-?approve|follow .{0,30}first",
                sign.excerpt,
                re.IGNORECASE,
            )
        ):
            yield replace(sign, name="agent-file-planted")
    for part in skill.parts:
        if part.kind is Kind.PROSE or not (part.language == "json" or part.file.endswith(".json")):
            continue
        if (redirect := _REDIRECT.search(part.text)) is not None:
            line = part.line + part.text.count("\n", 0, redirect.start())
            yield Sign("agent-redirected", part, line, redirect[0][:200])
