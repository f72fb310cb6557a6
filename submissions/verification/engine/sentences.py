"""How sentences are told apart, and what in them says that a thing is told about, quoted or forbidden. Data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from submissions.verification.engine.wording import Wording, Words

_LONGEST: Final = 6000
_MARK: Final = re.compile(r"\s*(?:[-*+>|#]|\d{1,3}[.)]\s|$)")

SENTENCE: Final = re.compile(r"[^.!?\n|]{3,600}(?:[.!?](?!\s)[^.!?\n|]{0,300}){0,12}")
LINK: Final = re.compile(r"\]\([^)\s]{1,400}\)")
QUOTED: Final = re.compile(r"\"[^\"\n]{0,200}\"|“[^”\n]{0,200}”|`[^`\n]{0,200}`|'[^'\n]{12,200}'")
NEGATED: Final = re.compile(
    r"\b(?:never|do not|don't|must not|should not|shouldn't|cannot|can't|won't|avoid|refuse|without|no longer"
    r"|rather than|instead of|not to)\b",
    re.IGNORECASE,
)
TOLD: Final = Wording(
    (
        (
            "detect flag block reject prevent look scan check identif attempt attack inject malicious adversar e.g. "
            "example such_as phrase pattern victim threat vulnerab exploit suspicious if_ jailbreak payload test_case "
            "warn treat"
        ),
    ),
    r"\b(?:detect|flag|block|reject|prevent|look(?:s|ing)? for|scan|check(?:s|ing)? for|identif|attempt|attack"
    r"|inject|malicious|adversar|e\.g\.|for example|such as"
    r"|phrases? like|patterns?|victim|attacker|threat|vulnerab|exploit|suspicious|red flag|if (?:you|it|the|a"
    r"|an|any) (?:see|contains?|says?|tells?|asks?|instructs?)|jailbreak|payload|test case|example|warn"
    r"|treat (?:it|them|this) as data)",
    re.IGNORECASE,
)


@dataclass(slots=True)
class Sentence:
    """A sentence with its line in the part (from 0), and whether it is told about rather than asked for.

    ``bare`` is its text without quotations and addresses, ``words`` are those in both that phrases need.
    """

    text: str
    line: int
    told: bool
    bare: str
    words: Words


def paragraphs(text: str) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Yield each paragraph on one line, with where in it each of its lines begins and the number of that line from 0.

    A sentence does not end where a line is wrapped; items of lists, rows of tables and quotations begin anew.
    """
    held, starts = "", list[tuple[int, int]]()
    for offset, line in enumerate(text.split("\n")):
        wrapped = held and len(held) < _LONGEST and len(starts) < 40 and len(line) > 2 and not _MARK.match(line)
        if wrapped and (starts[-1][0] == 0 or len(held) - starts[-1][0] > 20):
            starts.append((len(held) + 1, offset))
            held += " " + line.strip()
            continue
        if len(held) > 2:
            yield held[:_LONGEST], starts
        held, starts = line, [(0, offset)]
    if len(held) > 2:
        yield held[:_LONGEST], starts
