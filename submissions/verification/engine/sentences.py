"""How sentences are told apart, and what in them says that a thing is told about, quoted or forbidden. Data."""

from __future__ import annotations

import re
from typing import Final

SENTENCE: Final = re.compile(r"[^.!?\n|]{3,600}(?:[.!?](?!\s)[^.!?\n|]{0,300}){0,12}")
LINK: Final = re.compile(r"\]\([^)\s]{1,400}\)")
QUOTED: Final = re.compile(r"\"[^\"\n]{0,200}\"|“[^”\n]{0,200}”|`[^`\n]{0,200}`|'[^'\n]{12,200}'")
NEGATED: Final = re.compile(
    r"\b(?:never|do not|don't|must not|should not|shouldn't|cannot|can't|won't|avoid|refuse|without|no longer"
    r"|rather than|instead of|not to)\b",
    re.IGNORECASE,
)
TOLD: Final = re.compile(
    r"\b(?:detect|flag|block|reject|prevent|look(?:s|ing)? for|scan|check(?:s|ing)? for|identif|attempt|attack"
    r"|inject|malicious|adversar|e\.g\.|for example|such as"
    r"|phrases? like|patterns?|victim|attacker|threat|vulnerab|exploit|suspicious|red flag|if (?:you|it|the|a"
    r"|an|any) (?:see|contains?|says?|tells?|asks?|instructs?)|jailbreak|payload|test case|example|warn"
    r"|treat (?:it|them|this) as data)",
    re.IGNORECASE,
)
