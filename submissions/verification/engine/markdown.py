"""Take Markdown apart into what an agent follows, what it runs, and what it is only told about."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from markdown_it import MarkdownIt, rules_block
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token

from submissions.verification.engine.parts import Kind, Part
from submissions.verification.engine.vocabulary import SCRIPT_LANGUAGES

# Blocks alone: what is inside them is read below, at a fraction of the time.
_BLOCKS: Final = MarkdownIt("commonmark", {"maxNesting": 40}).enable("table")
_DEEPEST_INDENT: Final = 80
_INDENT: Final = re.compile(rf"^[ \t]{{{_DEEPEST_INDENT},}}", re.MULTILINE)
_CHUNK: Final = 200_000
_FRONT: Final = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$\n?", re.DOTALL | re.MULTILINE)
_COMMENT: Final = re.compile(r"<!--(.*?)(?:-->|\Z)", re.DOTALL)
_REFERENCE: Final = re.compile(r"^\[(?://|comment|_)[^\]\n]{0,40}\]:\s*\S+\s*[\"'(](.{1,2000})[\"')]\s*$", re.MULTILINE)
_INLINE: Final = re.compile(r"(?<!`)(`{1,3})(?!`)([^`\n]{1,4000})\1(?!`)")
_COMMAND: Final = re.compile(
    r"^\s*(?:\$ |> |sudo |curl |wget |nc |ncat |bash |sh |zsh |python3? |node |npx |npm |pip3? |echo |printf "
    r"|cat |export |eval |source "
    r"|powershell|pwsh|iwr |irm |iex|rm |chmod |crontab|ssh |scp |rsync |tar |zip |docker |git |openssl |dig "
    r"|nslookup |env\b|osascript |launchctl |mkfifo |\* \* )"
)
_SHELL_PROSE: Final = re.compile(
    r"^\s{0,8}(?:[-*+]\s+|\d{1,3}[.)]\s+)?((?:curl|wget|bash|sh|nc|powershell|pip3?|npm|npx|git|python3?|scp"
    r"|iwr|irm)\s+[-\w./:'\"$@].*)$"
)

# A download that is piped into a shell, within a sentence: nothing else is written so.
_PIPED: Final = re.compile(
    r"\b((?:curl|wget)\s[^\n|`]{4,300}\|\s{0,3}(?:sudo\s+(?:-\w+\s+)*)?(?:ba|z|da|k)?sh\b(?:\s+-\w+)*)", re.IGNORECASE
)
_UNSEEN: Final = re.compile(
    r"<(\w{1,10})\b[^>]{0,200}(?:display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*[01](?:px|pt|em)?\b"
    r"|opacity\s*:\s*0(?![.\d])"
    r"|color\s*:\s*(?:white|#f{3}(?:f{3})?|transparent)\b|\shidden\b)[^>]{0,200}>(.{1,4000}?)</\1\s*>",
    re.IGNORECASE | re.DOTALL,
)


_IN_PARAGRAPHS: Final = ["paragraph", "reference", "blockquote"]
# What the lines begin with that a rule is about, and where else the parser asks it.
_BEGINNINGS: Final = {
    "fence": (rules_block.fence, "`~", [*_IN_PARAGRAPHS, "list"]),
    "blockquote": (rules_block.blockquote, ">", [*_IN_PARAGRAPHS, "list"]),
    "hr": (rules_block.hr, "*-_", [*_IN_PARAGRAPHS, "list"]),
    "list": (rules_block.list_block, "*+-0123456789", _IN_PARAGRAPHS),
    "reference": (rules_block.reference, "[", []),
    "html_block": (rules_block.html_block, "<", _IN_PARAGRAPHS),
    "heading": (rules_block.heading, "#", _IN_PARAGRAPHS),
}
_Rule = Callable[[StateBlock, int, int, bool], bool]


def _only_after(beginnings: str, rule: _Rule) -> _Rule:
    """Return ``rule`` for lines that begin with one of ``beginnings``; it says no of all others, and takes longer."""

    def guarded(state: StateBlock, line: int, end: int, silent: bool) -> bool:
        start = state.bMarks[line] + state.tShift[line]
        return state.src[start : start + 1] in beginnings and rule(state, line, end, silent)

    return guarded


for _name, (_rule, _beginnings, _places) in _BEGINNINGS.items():
    _BLOCKS.block.ruler.at(_name, _only_after(_beginnings, _rule), {"alt": _places})


def read_markdown(text: str, file: str) -> Iterator[Part]:
    """Yield the parts of a document; a very long one is taken in pieces, whose fences end with them."""
    line = 1
    if (front := _FRONT.match(text)) is not None:
        yield Part(Kind.DATA, front[1], file, 2, "yaml", origin="frontmatter")
        line += front[0].count("\n")
        text = text[front.end() :]
    # Nobody indents that far, and lists within lists would cost their square.
    text = _INDENT.sub(" " * _DEEPEST_INDENT, text)
    # A heading before the front matter is read by no client, but the rest of the document is.
    while text:
        end = len(text) if len(text) <= _CHUNK else text.rfind("\n", 0, _CHUNK) + 1 or _CHUNK
        yield from _read_chunk(text[:end], file, line)
        line += text.count("\n", 0, end)
        text = text[end:]


class _Place:
    def __init__(self) -> None:
        self.headings: list[tuple[int, str]] = []
        self.lead = ""

    @property
    def heading(self) -> str:
        return " / ".join(text for _level, text in self.headings[-3:])


def _read_chunk(text: str, file: str, first: int) -> Iterator[Part]:
    place = _Place()
    prose: list[tuple[int, str]] = []
    # Remarks in the form of a reference are read below; a parser takes long for thousands of them.
    tokens = _block_tokens(_REFERENCE.sub(lambda match: "\n" * match[0].count("\n"), text))
    covered = 0
    for index, token in enumerate(tokens):
        if token.map is None and token.type != "inline":
            continue
        start = token.map[0] if token.map else covered
        if token.type == "inline":
            if index and tokens[index - 1].type == "heading_open":
                yield from _prose_part(prose, file, place)
                prose = []
                level = int(tokens[index - 1].tag[1])
                while place.headings and place.headings[-1][0] >= level:
                    place.headings.pop()
                place.headings.append((level, token.content[:120]))
            mark = "- " if index > 1 and tokens[index - 2].type == "list_item_open" else ""
            mark = "| " if index and tokens[index - 1].type in {"td_open", "th_open"} else mark
            mark = "> " if token.level > 1 and _in_quote(tokens, index) else mark
            prose.append((first + start, mark + token.content))
            before, place.lead = place.lead, token.content[-300:]
            yield from _inline_code(token.content, file, first + start, place, before)
        elif token.type in {"fence", "code_block"}:
            yield _code_part(token, file, first + start + (token.type == "fence"), place)
        elif token.type == "html_block":
            prose.append((first + start, _COMMENT.sub(" ", token.content)))
    yield from _prose_part(prose, file, place)
    yield from _hidden(text, file, first)


def _block_tokens(text: str) -> list[Token]:
    tokens: list[Token] = []
    _BLOCKS.block.parse(text.replace("\0", "\ufffd"), _BLOCKS, {}, tokens)
    return tokens


def _in_quote(tokens: list[Token], index: int) -> bool:
    depth = tokens[index].level
    for token in reversed(tokens[max(0, index - 12) : index]):
        if token.level < depth:
            if token.type == "blockquote_open":
                return True
            depth = token.level
    return False


def _prose_part(prose: list[tuple[int, str]], file: str, place: _Place) -> Iterator[Part]:
    """Yield what stands under one heading as one part, each block on the line where it is in the file."""
    if not prose:
        return
    first = prose[0][0]
    lines: list[str] = []
    for line, content in prose:
        lines += [""] * (line - first - len(lines))
        lines += content.rstrip("\n").split("\n")
    yield Part(Kind.PROSE, "\n".join(lines), file, first, "", place.heading or " ")


def _code_part(token: Token, file: str, line: int, place: _Place) -> Part:
    name = token.info.strip().split(" ")[0].strip("{}.").lower() if token.info else ""
    language = SCRIPT_LANGUAGES.get(name.partition(":")[0].partition(",")[0], "text" if name else "")
    return Part(Kind.CODE, token.content, file, line, language, place.heading or " ", place.lead)


def _inline_code(content: str, file: str, line: int, place: _Place, before: str) -> Iterator[Part]:
    """Yield commands in inline code, and lines of plain text that are commands."""
    for match in _INLINE.finditer(content) if "`" in content else ():
        if _COMMAND.match(match[2]) or "|" in match[2] or "/dev/tcp" in match[2] or ">>" in match[2]:
            at = line + content.count("\n", 0, match.start())
            around = content[max(0, match.start() - 200) : match.start()]
            # What opens a block is told about by the one before it.
            around = around if match.start() > 3 else before
            yield Part(Kind.CODE, match[2], file, at, "shell", place.heading or " ", around, inline=True)
    if "|" in content:
        for match in _PIPED.finditer(content):
            at = line + content.count("\n", 0, match.start())
            around = content[max(0, match.start() - 200) : match.start()]
            yield Part(Kind.CODE, match[1], file, at, "shell", place.heading or " ", around, inline=True)
    for offset, one in enumerate(content.split("\n")):
        if len(one) < 2000 and (command := _SHELL_PROSE.match(one)) is not None:
            yield Part(
                Kind.CODE, command[1], file, line + offset, "shell", place.heading or " ", place.lead, inline=True
            )


def _hidden(text: str, file: str, first: int) -> Iterator[Part]:
    unseen = [(match[2], match.start(2)) for match in _UNSEEN.finditer(text)] if "<" in text else []
    found = [(match[1], match.start(1)) for match in [*_COMMENT.finditer(text), *_REFERENCE.finditer(text)]]
    seen: set[str] = set()
    for inside, at in [*found, *unseen]:
        if inside.strip() and inside not in seen:
            seen.add(inside)
            line = first + text.count("\n", 0, at)
            yield Part(Kind.COMMENT, inside, file, line, heading=" ", hidden=True)
            for match in _INLINE.finditer(inside):
                if _COMMAND.match(match[2]):
                    at_line = line + inside.count("\n", 0, match.start())
                    yield Part(Kind.CODE, match[2], file, at_line, "shell", " ", "", inline=True, hidden=True)
