"""Judge one folder with our own engine and print what it finds as JSON; runs only as a limited child process."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Final

from submissions.verification.engine.judging import as_document, judge

_DEEPEST: Final = 6000


def main(arguments: list[str]) -> None:
    """Print what our engine says of the folder ``arguments[0]``, as one JSON document; see ``as_document``."""
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    # Chains of calls and of branches are deep where nobody thinks them so.
    sys.setrecursionlimit(_DEEPEST)
    document = as_document(judge(Path(arguments[0])))
    with answer:
        json.dump(document, answer, ensure_ascii=True)
