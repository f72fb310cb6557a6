"""The two kinds of findings about the format of a skill: what stops it, and what is only a note."""

from __future__ import annotations

from submissions.verification.findings import Finding, FindingKind, Severity


def problem(rule: str, title: str, *, file: str, line: int | None = None, excerpt: str = "", advice: str) -> Finding:
    """Return a finding about the format of SKILL.md, which stops a package.

    ``rule`` is the rule's id without its prefix ``format.``. ``title``, ``excerpt`` and ``advice`` are shown to the
    author. ``file`` and ``line`` (from 1, None for the whole file) are its place.
    """
    return Finding(
        rule_id=f"format.{rule}",
        severity=Severity.MEDIUM,
        kind=FindingKind.FORMAT,
        title=title,
        file=file,
        line=line,
        excerpt=excerpt,
        why="Agents and registries could not read this skill, or would read it in different ways.",
        advice=advice,
    )


def lint(
    rule: str,
    title: str,
    file: str,
    advice: str,
    severity: Severity = Severity.LOW,
    *,
    line: int | None = 1,
    excerpt: str = "",
) -> Finding:
    """Return a finding about a deviation from the specification, which never stops a package.

    ``rule`` is the rule's id without its prefix ``lint.``. ``title``, ``excerpt`` and ``advice`` are shown to the
    author, with the path ``file`` and the ``line`` in it. ``severity`` is LOW unless the rule is a mere remark.
    """
    return Finding(
        rule_id=f"lint.{rule}",
        severity=severity,
        kind=FindingKind.LINT,
        title=title,
        file=file,
        line=line,
        excerpt=excerpt,
        why="The agentskills.io specification asks for this, and stricter clients may refuse the skill.",
        advice=advice,
    )
