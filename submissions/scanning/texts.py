"""A scan in words: for a terminal, and as Markdown for the comment of a bot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from marketplace.pages.wording import capability_words
from submissions.scanning.outcomes import gravest
from submissions.scanning.scan import ScannedSkill
from submissions.verification.findings import Finding, Severity
from submissions.verification.verdict import Verdict
from vskill.hidden_characters import visible

LABELS: Final = {
    Verdict.CLEAR: "clear",
    Verdict.NOTES: "notes",
    Verdict.FORMAT: "format",
    Verdict.INCONCLUSIVE: "not scanned completely",
    Verdict.HELD: "held",
    Verdict.HELD_HIGH: "held, strong signs",
    Verdict.REFUSED: "refused",
    Verdict.UNSCANNED: "not scanned",
    Verdict.NO_ENGINE: "not scanned",
}
"""How a verdict is called in a list."""
Paint = Callable[[str, Verdict], str]
# A page of Markdown that no person reads to its end helps nobody.
_MOST_ROWS: Final = 100


def _plain(text: str, _verdict: Verdict) -> str:
    return text


def place(skill: ScannedSkill, finding: Finding) -> str:
    """Return the place of a finding as editors take it, below the folder that was scanned."""
    path = "/".join(part for part in (visible(skill.path), finding.file) if part) or "."
    return f"{path}:{finding.line}" if finding.line else path


def _unread(skill: ScannedSkill) -> list[str]:
    said = [f"{one.engine}: {place(skill, one)}: {one.title}" for one in skill.not_looked_at]
    failed = [one for one in skill.results if one.error and not _names_its_parts(skill, one.engine)]
    return said + [one.error for one in failed]


def _names_its_parts(skill: ScannedSkill, engine: str) -> bool:
    return any(finding.engine == engine for finding in skill.decision.findings if finding.rule_id == "coverage")


def terminal_lines(skills: Sequence[ScannedSkill], *, paint: Paint = _plain, every: bool = False) -> Iterator[str]:
    """Yield the lines for a terminal, the gravest skill last, where the eye is.

    ``paint`` colours a text by its verdict. Findings of severity info are counted, and listed where ``every`` is true.
    """
    for skill in sorted(skills, key=lambda one: _rank(one.decision.verdict)):
        verdict = skill.decision.verdict
        yield paint(f"{visible(skill.name) or '.'}  ({visible(skill.path) or '.'})  {LABELS[verdict].upper()}", verdict)
        yield f"  {skill.decision.summary}"
        yield from _asks_for(skill)
        yield from (f"  {result.engine}: {reason}" for result in skill.results for reason in result.reasons)
        unread = set(skill.not_looked_at)
        shown = [one for one in skill.decision.findings if one not in unread]
        hidden = 0
        for finding in shown:
            if finding.severity is Severity.INFO and not every:
                hidden += 1
                continue
            yield ""
            yield from _finding_lines(skill, finding)
        if hidden:
            yield f"  {hidden} more of severity info; -v 2 lists them."
        if not_read := _unread(skill):
            yield ""
            yield "  Not looked at:"
            yield from (f"    {line}" for line in not_read)
        yield ""
    yield summary_line(skills)


def _asks_for(skill: ScannedSkill) -> Iterator[str]:
    """Yield what a skill asks for, each with the name by which the filters of a registry know it."""
    asked = skill.asks_for
    if asked.names:
        words = ", ".join(f"{visible(capability_words(name).label)} ({visible(name)})" for name in asked.names)
        yield f"  Asks for: {words}.{' Also possible: unread files.' if asked.unread else ''}"
    elif asked.unread and skill.results:
        yield "  Asks for: not known."


def _rank(verdict: Verdict) -> int:
    return list(LABELS).index(verdict)


def _finding_lines(skill: ScannedSkill, finding: Finding) -> Iterator[str]:
    yield f"  {finding.severity.value.upper():<8} {finding.title}  [{finding.engine} {finding.rule_id}]"
    yield f"           {place(skill, finding)}"
    if finding.excerpt:
        yield f"           | {finding.excerpt}"
    if finding.why:
        yield f"           Why: {finding.why}"
    if finding.advice:
        yield f"           Do:  {finding.advice}"


def summary_line(skills: Sequence[ScannedSkill]) -> str:
    """Return how many skills have which verdict, in one line."""
    counted = Counter(LABELS[skill.decision.verdict] for skill in skills)
    parts = [f"{counted[label]} {label}" for label in dict.fromkeys(LABELS.values()) if counted[label]]
    return f"{len(skills)} skill{'s' * (len(skills) != 1)}: {', '.join(parts)}"


def as_markdown(skills: Sequence[ScannedSkill]) -> str:
    """Return the scan as Markdown: a table of the skills, and for each the findings that are more than info."""
    worst = gravest(skill.decision.verdict for skill in skills)
    lines = [f"## Skills: {LABELS[worst]}", "", summary_line(skills), "", "| skill | verdict | what it means |"]
    lines.append("|---|---|---|")
    for skill in skills:
        verdict = LABELS[skill.decision.verdict]
        lines.append(f"| {_code(skill.path or '.')} | {verdict} | {_cell(skill.decision.summary)} |")
    for skill in skills:
        unread = set(skill.not_looked_at)
        shown = [one for one in skill.decision.findings if one not in unread and one.severity is not Severity.INFO]
        not_read = _unread(skill)
        if not shown and not not_read:
            continue
        lines += ["", f"### {_code(skill.path or '.')}", ""]
        if shown:
            lines += ["| severity | what | where | what to do |", "|---|---|---|---|"]
        for finding in shown[:_MOST_ROWS]:
            excerpt = f"<br>{_code(finding.excerpt)}" if finding.excerpt else ""
            where = _code(place(skill, finding)) + excerpt
            lines.append(f"| {finding.severity.value} | {_cell(finding.title)} | {where} | {_cell(finding.advice)} |")
        if len(shown) > _MOST_ROWS:
            lines += ["", f"{len(shown) - _MOST_ROWS:,} more are in the JSON document."]
        if not_read:
            lines += ["", "Not looked at:", "", *(f"* {_cell(line)}" for line in not_read[:_MOST_ROWS])]
    return "\n".join([*lines, ""])


# Whatever could begin a link, a picture, a tag, a mention or a cell; the text comes from the skill.
_ESCAPED: Final = {ord(one): f"&#{ord(one)};" for one in "\\`*_{}[]<>()#!|~&@:"}


def _cell(text: str) -> str:
    return text.translate(_ESCAPED).replace("\n", " ")


def _code(text: str) -> str:
    """Return a text in the element ``code``, so that no character of it is Markdown."""
    return f"<code>{_cell(visible(text))}</code>"
