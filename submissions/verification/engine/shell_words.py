"""Split shell text into pipelines of commands with their words, as a shell would, without running anything."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from submissions.verification.engine.shell_command import Command

_LONGEST: Final = 1_500_000
_PLAIN: Final = re.compile(r"[^\s'\"\\$`|&;<>()#\n]+")
_QUOTED: Final = re.compile(r"[^\"\\$`]*")
_UNNESTED: Final = re.compile(r"[^\\'\"()]*")
_BLANKS: Final = re.compile(r"[ \t]+")
_HEREDOC: Final = re.compile(r"<<-?\s*(['\"]?)([A-Za-z_]\w{0,40})\1")
_PROMPT: Final = re.compile(r"^(?:\$|%|>|PS [^>\n]{0,60}>|\(\w{1,20}\) \$)\s+(?=\S)", re.MULTILINE)
_ASSIGNMENT: Final = re.compile(r"(?:export\s+)?([A-Za-z_]\w*)=(.*)", re.DOTALL)


# Of one text: nobody writes so many, and each takes memory until its pipeline is whole.
_MOST_COMMANDS: Final = 20_000


class ShellReader:
    """Reads ``text`` as pipelines of commands; ``is_cut`` is true once it was too much to read all of it."""

    def __init__(self, text: str) -> None:
        self.text = _PROMPT.sub("", text[:_LONGEST])
        self.is_cut = len(text) > _LONGEST
        self.commands = 0
        self.at = 0
        self.line = 0
        self.pipeline: list[Command] = []
        self.command = Command(0)
        self.word: list[str] | None = None
        self.redirect = ""
        self.waiting: list[tuple[str, Command]] = []

    def read(self) -> Iterator[list[Command]]:
        """Yield each pipeline as its commands, in order."""
        text = self.text
        while self.at < len(text):
            one = text[self.at]
            if one in " \t":
                if self.word is not None:
                    self._end_word()
                self.at = _end_of(_BLANKS, text, self.at)
            elif one == "\n":
                # A pipeline is whole only with its here-documents, which follow its line.
                ended = list(self._end_pipeline())
                self.at += 1
                self.line += 1
                self._documents()
                yield from ended
            elif one == "#" and self.word is None:
                end = text.find("\n", self.at)
                self.at = len(text) if end < 0 else end
            elif one in ";&|()":
                yield from self._operator(one)
            elif one in "<>":
                self._redirection(one)
            else:
                self._piece(one)
        yield from self._end_pipeline()

    def _operator(self, one: str) -> Iterator[list[Command]]:
        following = self.text[self.at + 1 : self.at + 2]
        if one == "&" and following == ">":
            self._end_word()
            self.at += 1
        elif one == "|" and following != "|":
            self._end_command()
            self.at += 1 + (following == "&")
            # A pipe may go on in the next line.
            while self.at < len(self.text) and self.text[self.at] in " \t\n":
                self.line += self.text[self.at] == "\n"
                self.at += 1
            self.command.line = self.line
        else:
            yield from self._end_pipeline()
            self.at += 1 + (following == one)
            if one in "()":
                # A group: what is inside flows into what follows its end.
                self.command.words.append(one)

    def _redirection(self, one: str) -> None:
        text = self.text
        if one == "<" and (match := _HEREDOC.match(text, self.at)) is not None:
            self._end_word()
            self.waiting.append((match[2], self.command))
            self.at = match.end()
            return
        if text.startswith("<<<", self.at):
            self._end_word()
            self.at += 3
            self.command.words.append("<<<")
            return
        if text.startswith(("<(", ">("), self.at):
            end = _closing(text, self.at + 2)
            self._start().append("\0")
            self.command.inner.append(text[self.at + 2 : end])
            self.at = end + 1
            return
        errors = bool(self.word) and "".join(self.word or ()) == "2"
        if self.word and "".join(self.word).isdigit():
            self.word = None
        self._end_word()
        self.at += 1
        while self.at < len(text) and text[self.at] in ">&|":
            self.at += 1
        self.redirect = "2" if errors else one

    def _piece(self, one: str) -> None:
        text, word = self.text, self._start()
        if one == "'":
            end = text.find("'", self.at + 1)
            end = len(text) if end < 0 else end
            self._take(text[self.at + 1 : end], word)
            self.at = end + 1
        elif one == '"':
            self._double_quoted(word)
        elif one == "\\":
            following = text[self.at + 1 : self.at + 2]
            if following == "\n":
                self.line += 1
            else:
                word.append(following)
            self.at += 2
        elif one in "$`":
            self._substitution(word)
        elif (match := _PLAIN.match(text, self.at)) is not None:
            word.append(match[0])
            self.at = match.end()
        else:
            word.append(one)
            self.at += 1

    def _double_quoted(self, word: list[str]) -> None:
        text = self.text
        self.at += 1
        start = self.at
        while True:
            self.at = _end_of(_QUOTED, text, self.at)
            if self.at >= len(text) or (one := text[self.at]) == '"':
                break
            if one == "\\":
                self._take(text[start : self.at] + text[self.at + 1 : self.at + 2], word)
                self.at += 2
                start = self.at
            elif text.startswith("$(", self.at) or one == "`":
                self._take(text[start : self.at], word)
                self._substitution(word)
                start = self.at
            else:
                self.at += 1
        self._take(text[start : self.at], word)
        self.at += 1

    def _substitution(self, word: list[str]) -> None:
        text = self.text
        if text.startswith("$(", self.at) and not text.startswith("$((", self.at):
            end = _closing(text, self.at + 2)
            self._inner(text[self.at + 2 : end], word)
            self.at = end + 1
        elif text[self.at] == "`":
            end = text.find("`", self.at + 1)
            end = len(text) if end < 0 else end
            self._inner(text[self.at + 1 : end], word)
            self.at = end + 1
        elif text.startswith("$'", self.at):
            self.at += 1
        else:
            word.append(text[self.at])
            self.at += 1

    def _inner(self, inner: str, word: list[str]) -> None:
        self.command.inner.append(inner)
        self.line += inner.count("\n")
        word.append("\0")

    def _take(self, piece: str, word: list[str]) -> None:
        word.append(piece)
        self.line += piece.count("\n")

    def _start(self) -> list[str]:
        if self.word is None:
            self.word = []
            if not self.command.words:
                self.command.line = self.line
        return self.word

    def _end_word(self) -> None:
        if self.word is None:
            return
        word = "".join(self.word)
        self.word = None
        if self.redirect:
            if self.redirect != "2":
                (self.command.targets if self.redirect == ">" else self.command.sources).append(word)
            self.redirect = ""
        elif (match := _ASSIGNMENT.fullmatch(word)) is not None and self.command.words in ([], ["export"], ["local"]):
            self.command.assigned[match[1]] = match[2]
        else:
            self.command.words.append(word)

    def _end_command(self) -> None:
        self._end_word()
        self.redirect = ""
        self.pipeline.append(self.command)
        # Blank lines and comments end commands as well, without being any.
        self.commands += _is_any(self.command)
        self.command = Command(self.line)
        if self.commands > _MOST_COMMANDS:
            self.is_cut = True
            self.at = len(self.text)

    def _end_pipeline(self) -> Iterator[list[Command]]:
        self._end_command()
        done = [one for one in self.pipeline if _is_any(one)]
        self.pipeline = []
        if done:
            yield done

    def _documents(self) -> None:
        """Take the lines of here-documents, which follow the line that names them."""
        for mark, command in self.waiting:
            start = self.at
            lines = []
            while start < len(self.text):
                end = self.text.find("\n", start)
                end = len(self.text) if end < 0 else end
                line = self.text[start:end]
                start = end + 1
                self.line += 1
                if line.strip() == mark:
                    break
                lines.append(line)
            command.document = "\n".join(lines)
            self.at = min(start, len(self.text))
        self.waiting = []


def _is_any(command: Command) -> bool:
    return bool(command.words or command.assigned or command.inner or command.targets)


def _end_of(pattern: re.Pattern[str], text: str, start: int) -> int:
    """Return where a run of letters that mean nothing ends; patterns of such runs match everywhere."""
    match = pattern.match(text, start)
    return match.end() if match is not None else start


def _closing(text: str, start: int) -> int:
    """Return the place of the bracket that closes what was opened before ``start``, quotes respected."""
    depth, quote, at = 1, "", start
    while (at := _end_of(_UNNESTED, text, at)) < len(text):
        one = text[at]
        if one == "\\":
            at += 1
        elif quote:
            quote = "" if one == quote else quote
        elif one in "'\"":
            quote = one
        elif one == "(":
            depth += 1
        elif one == ")":
            depth -= 1
            if depth == 0:
                return at
        at += 1
    return len(text)
