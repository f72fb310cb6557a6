"""The development sources: which folders of which repository are malicious or benign, and what kind they are.

Other sources judge what is built here, and are not looked for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from submissions.evaluation.labels import Label

MALICIOUS, BENIGN = Label.MALICIOUS, Label.BENIGN
# Layouts: a folder with a SKILL.md; a folder that may lack one; one page of Markdown; a base skill and a list of
# instructions that are put into it.
FOLDER, BARE_FOLDER, PAGE, INJECTED = "folder", "bare folder", "page", "injected"


@dataclass(frozen=True)
class Rule:
    """Samples of one kind in a repository.

    ``pattern`` matches the folder of each (for PAGE its file, for INJECTED the list). ``campaign`` may name groups of
    it in braces. ``kind`` is the kind, or '' where words of the path tell it, see ``kind_of``. Of more than ``most``
    samples as many are kept, chosen by the hash of their paths.
    """

    layout: str
    label: Label
    pattern: str
    campaign: str
    kind: str = ""
    most: int = 0


@dataclass(frozen=True)
class Source:
    """A repository with its licence, as it says itself.

    ``markers`` is a pattern of what its collectors wrote about their samples, beside the marks that all are rid of.
    """

    repository: str
    licence: str
    rules: tuple[Rule, ...]
    markers: str = ""


def _everywhere(kind: str, campaign: str = "published") -> tuple[Rule, ...]:
    # No SKILL.md at the root, which would be the whole repository.
    return (Rule(FOLDER, BENIGN, r".+", campaign, kind),)


_CLAW: Final = r"benchmarks/skills/(?P<host>claude|openclaw)/{label}/\w+?_(?P<code>A\d+|cat\d)_\d+/\.\w+/skills/[^/]+"
_MCP: Final = r"benchmarks/skills/(?P<host>mcp)/{label}/\w+?_(?P<code>A\d+|cat\d)_\d+"

SOURCES: Final = (
    Source(
        "qualixar/skillfortify",
        "MIT (benchmarks/LICENSE)",
        (
            Rule(FOLDER, MALICIOUS, _CLAW.format(label="malicious"), "{host}-{code}"),
            Rule(BARE_FOLDER, MALICIOUS, _MCP.format(label="malicious"), "{host}-{code}"),
            Rule(FOLDER, BENIGN, _CLAW.format(label="benign"), "{host}-{code}", "generated"),
            Rule(BARE_FOLDER, BENIGN, _MCP.format(label="benign"), "{host}-{code}", "generated"),
        ),
    ),
    Source(
        "zast-ai/skill-security-reviewer",
        "MIT (README.md)",
        (
            Rule(FOLDER, MALICIOUS, r"malicious-skill-benchmark/benchmark-(?P<code>\d{3})-[^/]+", "benchmark"),
            Rule(FOLDER, MALICIOUS, r"advanced-malicious-skills/adv-\d{3}-[^/]+", "advanced", "obfuscation"),
        ),
        r"\(malicious\)|# malicious\b|malicious_indicators|detection_points|security (?:benchmark|research|test)"
        r"|test sample|known_malicious|benchmark-test|for (?:detection|security) testing|do not execute",
    ),
    Source(
        "aisa-group/skill-inject",
        "MIT",
        (
            Rule(INJECTED, MALICIOUS, r"data/obvious_injections\.json", "obvious"),
            Rule(INJECTED, MALICIOUS, r"data/contextual_injections\.json", "contextual"),
            Rule(FOLDER, BENIGN, r"data/skills/.+", "base", "ordinary"),
        ),
    ),
    Source(
        "agentverus/agentverus-scanner",
        "MIT",
        (
            Rule(PAGE, MALICIOUS, r"runs/detection-f1/corpus/malicious/mal-(?P<code>[a-z]+)-[^/]+\.md", "{code}"),
            Rule(PAGE, MALICIOUS, r"runs/detection-f1/corpus/external/ext-[^/]+\.md", "external"),
            Rule(
                PAGE,
                MALICIOUS,
                r"test/fixtures/skills/(?:malicious-|obfuscated|concealment|config-tampering\.|lifecycle"
                r"|evasion-(?!context-safe|negation-safe))[^/]*",
                "fixtures",
            ),
            Rule(FOLDER, MALICIOUS, r"test/fixtures/packages/companion-exfiltration", "fixtures", "exfiltration"),
            Rule(
                PAGE,
                BENIGN,
                r"test/fixtures/skills/(?:safe-|openclaw-format|declared|config-tampering-safe|legit-curl"
                r"|evasion-(?:context|negation)-safe)[^/]*",
                "fixtures",
                "look-alike",
            ),
            Rule(PAGE, BENIGN, r"test/fixtures/skills/legit-security-skill\.md", "fixtures", "security-teaching"),
            Rule(PAGE, BENIGN, r"runs/detection-f1/corpus/benign/[^/]+\.md", "published", "ordinary"),
        ),
    ),
    Source(
        "kurtpayne/skillscan-security",
        "Apache-2.0",
        (
            Rule(PAGE, MALICIOUS, r"corpus/agent_hijacker/[^/]+\.md", "hijacker", "prompt-injection"),
            Rule(
                BARE_FOLDER,
                MALICIOUS,
                r"examples/showcase/\d+_(?!dep_vuln|unpinned|policy_|openai_|claude_style|benign)[^/]+",
                "showcase",
            ),
            Rule(
                BARE_FOLDER,
                MALICIOUS,
                r"tests/adversarial/cases/a\d+_(?!dep_|unpinned|benign|graph_benign)[^/]+",
                "adversarial",
            ),
            Rule(BARE_FOLDER, MALICIOUS, r"tests/fixtures/malicious/[^/]+", "fixtures", "prompt-injection"),
            Rule(PAGE, BENIGN, r"corpus/benign/[^/]+\.md", "published", "ordinary"),
        ),
        r"skillscan|detection rationale|demonstrat|this showcase|^# example \d+|malware|adversarial",
    ),
    Source(
        "cisco-ai-defense/skill-scanner",
        "Apache-2.0",
        (
            Rule(FOLDER, MALICIOUS, r"evals/skills/(?!safe-)(?P<code>[^/]+)/[^/]+", "evals"),
            Rule(FOLDER, MALICIOUS, r"evals/test_skills/malicious/[^/]+", "evals"),
            Rule(FOLDER, BENIGN, r"evals/skills/safe-[^/]+/[^/]+", "evals", "look-alike"),
            Rule(FOLDER, BENIGN, r"evals/test_skills/safe/[^/]+", "evals", "look-alike"),
        ),
        r"evaluation skill|vulnerability:|hidden threat:|- (?:unsafe|malicious|safe implementation)\b|malicious version"
        r"|intentional vulnerabilities|test skill (?:with|containing)|should detect|# (?:safe|critical):",
    ),
    Source("anthropics/skills", "Apache-2.0 or source-available, by folder", _everywhere("ordinary")),
    Source("wshobson/agents", "MIT", _everywhere("ordinary")),
    Source("K-Dense-AI/claude-scientific-skills", "MIT", _everywhere("ordinary")),
    Source("trailofbits/skills", "CC-BY-SA-4.0", _everywhere("security-teaching")),
    Source("google/skills", "Apache-2.0", _everywhere("ordinary")),
    Source("android/skills", "Apache-2.0", _everywhere("ordinary")),
    Source(
        "cpyang/agent-threat-rules",
        "MIT; the copies keep the licences of their authors",
        (Rule(PAGE, BENIGN, r"data/skills-sh/skills/[^/]+/[^/]+\.md", "skills.sh", "ordinary", most=500),),
    ),
)

_CODES_OF_KIND: Final = {
    "agent-configuration": ("configtamper",),
    "code-execution": ("A4",),
    "concealment": ("concealment",),
    "credential-theft": ("A3", "credfile", "privkey", "secretcollect"),
    "destruction": ("A5",),
    "download-and-run": ("downloadrun",),
    "exfiltration": ("A1", "A2", "A7", "exfil"),
    "obfuscation": ("A13",),
    "privilege": ("A6",),
    "prompt-injection": ("A8", "coercetool", "promptinj"),
    "resource-abuse": ("A10",),
    "reverse-shell": ("A9", "revshell"),
    "supply-chain": ("A11", "A12"),
}
_KIND_OF_CODE: Final = {code: kind for kind, codes in _CODES_OF_KIND.items() for code in codes}
# The ranges of zast-ai's list of samples, each up to the number that it ends at.
_KIND_UP_TO: Final = (
    *((16, "credential-theft"), (30, "code-execution"), (44, "persistence"), (58, "exfiltration")),
    *((72, "prompt-injection"), (84, "privilege"), (94, "deception"), (100, "supply-chain")),
)
# The first that matches the path, or the title of an instruction, tells the kind.
_KIND_OF_WORDS: Final = (
    (r"revers|backdoor|websocket|c2\b|rat\b|backdoor port", "reverse-shell"),
    (
        r"download|curl|wget|clickfix|remote payload|dropper|shell_bootstrap|osascript|ghostclaw",
        "download-and-run",
    ),
    (
        r"base64|b64|hex|obfusc|zero.?width|bidi|trojan|unicode|smuggl|defanged|stega?o?b|binary|eicar",
        "obfuscation",
    ),
    (r"hook|claude|settings|mcp|autoapprove|memory|config|tool_|vscode|cursor|codespaces", "agent-configuration"),
    (r"npm|dep|postinstall|lifecycle|registry|supply|typosquat|pr_target|actions|extension|issue_", "supply-chain"),
    (r"credential|key|token|secret|password|keylog|wallet|harvest", "credential-theft"),
    (
        r"exfil|steal|clipboard|screenshot|history|location|upload|forward|log\b|logging|sync|backup",
        "exfiltration",
    ),
    (r"inject|jailbreak|prompt|instruction_abuse|override|hijack|evasion|semantic", "prompt-injection"),
    (r"persist|startup|cron|glassworm", "persistence"),
    (r"privil|chmod|permission|escal|container|docker|host_|admin|disable|sudo", "privilege"),
    (r"delet|del\b|encrypt|clean|reset|cancel|loop|dos\b|stress|force push", "destruction"),
    (
        r"bias|favorit|promot|skeptic|earth|political|histor|remed|citation|scores|spam|manipul",
        "wrong-answers",
    ),
    (r"skip|sql|traversal|path|ssrf|command|terms|public|default|risk|shortcut", "unsafe-advice"),
    (r"conceal|stealth|hide|deny", "concealment"),
)


def kind_of(rule: Rule, code: str, words: str) -> str:
    """Return the kind of a sample: that of its rule, of its ``code``, or else of the ``words`` that name it."""
    if rule.kind:
        return rule.kind
    code = re.sub(r"^A0", "A", code)
    if code in _KIND_OF_CODE:
        return _KIND_OF_CODE[code]
    if code.isdigit():
        return next(kind for last, kind in _KIND_UP_TO if int(code) <= last)
    matching = (kind for pattern, kind in _KIND_OF_WORDS if re.search(pattern, words.lower()))
    return next(matching, "other")
