"""What a skill promises, and what is a lesson in it: words around a sign that say it is shown and not asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from submissions.verification.engine.files import SkillParts
from submissions.verification.engine.parts import Kind, Sign

_WORD: Final = re.compile(r"[a-z0-9][a-z0-9-]{2,40}")
_FIELD: Final = re.compile(r"^(?:name|description):\s*(.*?)(?=^\w[\w-]*:|\Z)", re.DOTALL | re.MULTILINE)
_SECURITY: Final = re.compile(
    r"\b(?:security (?:review|audit|analysis|research|testing|scann|assess|course|train|vulnerab)|penetration"
    r"|pentest\w*|red[- ]team\w*|offensive|exploit\w*|ctf\b|malware|forensic\w*|threat (?:hunt|model|intel"
    r"|detect)\w*"
    r"|reverse engineer\w*|vulnerabilit\w*|incident response|yara|semgrep|codeql|fuzz\w*|attack (?:surface"
    r"|technique|path|simulation)\w*|detect\w* (?:attack|malicious|injection|persistence|exfiltration)|siem\b"
    r"|mitre|blue team|static analysis)",
    re.IGNORECASE,
)
_LESSON: Final = re.compile(
    r"\b(?:bad|wrong|insecure|unsafe|vulnerable|malicious|anti-?patterns?|attacks?|attackers?|red flags?"
    r"|suspicious|dangerous|do not|don't|never|avoid|forbidden|denied|blocked|blocklist|deny ?list|rejected"
    r"|incorrect|what not to"
    r"|false positives?|true positives?|test cases?|warning signs|vulnerabilit(?:y|ies))\b|❌|🚫|✗|⛔",
    re.IGNORECASE,
)
_SHOWN: Final = re.compile(
    r"#\s*(?:bad|wrong|insecure|unsafe|vulnerable|don't|do not|never|malicious|attack|❌)|//\s*(?:bad|wrong"
    r"|insecure|unsafe|vulnerable|❌)|❌",
    re.IGNORECASE,
)
_SOUGHT: Final = re.compile(
    r"\b(?:look(?:ing)? for|recogni[sz]e|signs? of|evidence of|indicators?|traces of|hunt(?:ing)? for"
    r"|detect)\b[^.\n]{0,120}$",
    re.IGNORECASE,
)
_PLACEHOLDER: Final = re.compile(
    r"\b(?:attacker|LHOST|ATTACKER_IP|YOUR_IP|target|10\.\d+\.\d+\.\d+|192\.168\.|example\.(?:com|org)"
    r"|evil\.com|attacker\.com|ATTACKER)\b|<[\w -]{2,20}>|\$\{?(?:LHOST|IP|HOST)"
)


@dataclass(frozen=True)
class Promise:
    """What a skill says of itself: the words of its name and description, and whether it is about security."""

    words: frozenset[str]
    teaches_security: bool


def promise_of(skill: SkillParts) -> Promise:
    """Return what the front matter of SKILL.md promises."""
    text = ""
    for part in skill.parts:
        if part.origin == "frontmatter" and part.file == "SKILL.md":
            text = " ".join(match[1] for match in _FIELD.finditer(part.text))
            break
    words = set(_WORD.findall(text.lower()))
    words |= {piece for word in words for piece in word.split("-")}
    words |= {word.replace("-", "") for word in words}
    return Promise(frozenset(words), _SECURITY.search(text) is not None)


def is_lesson(sign: Sign, promise: Promise) -> bool:
    """Return whether the words around a sign say that it is an example of what is bad.

    That holds for what stands in a document alone: a script is run by its name, whatever is written above it.
    """
    part = sign.part
    if part.hidden or not part.is_document:
        return False
    # The title names the skill; what a passage is for is said by the heading right above it.
    heading = part.heading.rpartition(" / ")[2] if " / " in part.heading else ""
    around = f"{heading} {part.lead}"
    if part.kind is Kind.CODE:
        if part.inline and _SOUGHT.search(part.lead) is not None:
            return True
        if _SHOWN.search(part.text[:2000]) and sign.part.file:
            return True
        if _LESSON.search(around) is not None:
            return True
        return promise.teaches_security and (
            not part.file.endswith("SKILL.md") or _PLACEHOLDER.search(sign.excerpt) is not None
        )
    return _LESSON.search(around) is not None or (promise.teaches_security and part.file != "SKILL.md")
