"""Split source code into coloured pieces, as a process of its own that answers one text a line.

A lexer is a set of regular expressions, and a hostile text can keep one of them busy for hours. So whoever asks kills
this process when it takes too long. It is run as a file, imports nothing of this project and ends with its input.
"""

from __future__ import annotations

import json
import resource
import sys
from typing import Final

from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Keyword, Name, Number, Operator, String, _TokenType

_MEMORY_BYTES: Final = 512 * 1024 * 1024
# The first that a token is in gives its class.
_CLASSES: Final[tuple[tuple[_TokenType, str], ...]] = (
    (Comment, "comment"),
    (String, "string"),
    (Number, "number"),
    (Operator.Word, "keyword"),
    (Keyword, "keyword"),
    (Name.Function, "name"),
    (Name.Class, "name"),
    (Name.Tag, "name"),
    (Name.Decorator, "name"),
    (Name.Builtin, "builtin"),
    (Name.Attribute, "builtin"),
    (Name.Variable, "builtin"),
)


def pieces(language: str, text: str) -> list[tuple[int, str]] | None:
    """Return the pieces of ``text`` as their length and the class of their colour, neighbours of one colour joined.

    ``language`` is a lexer's name. ``None`` is for a lexer that leaves out or adds a character: its pieces would
    colour what is not in the file.
    """
    found: list[tuple[int, str]] = []
    read = 0
    for _index, kind, value in get_lexer_by_name(language).get_tokens_unprocessed(text):
        if not text.startswith(value, read):
            return None
        read += len(value)
        # A type of tokens has an "in" of its own, which the stubs do not know.
        colour = next((name for family, name in _CLASSES if kind in family), "")  # type: ignore[comparison-overlap]
        if found and found[-1][1] == colour:
            found[-1] = (found[-1][0] + len(value), colour)
        elif value:
            found.append((len(value), colour))
    return found if read == len(text) else None


def main() -> None:
    """Answer each line of the input, a JSON list of language and text, with one line of JSON."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    for line in sys.stdin:
        sys.stdout.write(json.dumps(pieces(*json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
