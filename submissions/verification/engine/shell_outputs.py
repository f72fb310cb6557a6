"""Work out what shell commands write, and what is known of variables and files after them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from submissions.verification.engine.decoding import decode_base64, decode_hex, rotated
from submissions.verification.engine.parts import Kind, Part, Sign
from submissions.verification.engine.phrase import Phrase
from submissions.verification.engine.shell_command import Command
from submissions.verification.engine.values import (
    DECODED,
    ENVIRONMENT,
    FILE,
    HOST,
    PERSON,
    REMOTE,
    labels_of_name,
    labels_of_path,
)
from submissions.verification.engine.vocabulary import FETCHERS

_VARIABLE: Final = re.compile(r"\$\{?([A-Za-z_]\w*)")
_DECODERS: Final = Phrase(
    ("base64 xxd openssl gunzip zcat tr",),
    r"base64\s+(?:-\w*[dD]|--decode)|xxd\s+-r|openssl\s+(?:enc|base64)\b.*-d|\bgunzip\b|\bzcat\b"
    r"|tr\s+['\"]?[A-Za-z-]{3,}['\"]?\s+['\"]?[NnMm]-",
    re.NOFLAG,
)
_OUTPUT: Final = frozenset({"-o", "--output", "-O", "--output-document", "-OutFile", "-outfile"})

# Of what one part puts together: more is said to be unread.
_MOST_FOUND: Final = 1000
_MOST_LETTERS: Final = 300_000


@dataclass
class ShellState:
    """What earlier commands of the same document have left.

    ``variables`` have a text and labels, ``files`` the labels of what a file holds, and ``texts`` what was written to
    one.
    """

    variables: dict[str, tuple[str, frozenset[str]]] = field(default_factory=dict)
    files: dict[str, frozenset[str]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)


@dataclass
class Output:
    """What a command writes: its labels, and its text where that is constant."""

    labels: frozenset[str] = frozenset()
    text: str | None = None


class ShellOutputs:
    """The values of words and the outputs of commands in one part; see ``ShellFlows``, which follows them to sinks."""

    def __init__(self, part: Part, state: ShellState) -> None:
        self.part = part
        self.state = state
        self.signs: list[Sign] = []
        self.found: list[Part] = []
        self.is_cut = False
        self._letters = 0
        self._lines = part.text.split("\n")

    def _sign(self, name: str, line: int, detail: str = "") -> None:
        excerpt = self._lines[min(line, len(self._lines) - 1)].strip()[:240]
        self.signs.append(Sign(name, self.part, self.part.line + (0 if self.part.origin else line), excerpt, detail))

    def _bound(self, command: Command, flowing: Output, inner: Output) -> None:
        """Bind the variables of a loop, or of a read, to what they take."""
        words = command.program[1:]
        if command.name == "read":
            names, labels = [word for word in words if not word.startswith("-")], flowing.labels
        else:
            names, labels = command.words[1:2], inner.labels.union(*(self._labels(word) for word in command.words[3:]))
        for name in names:
            self.state.variables[name] = ("", labels)

    def _expand(self, text: str) -> str:
        """Return ``text`` with the variables that are known put in."""

        def value(match: re.Match[str]) -> str:
            known = self.state.variables.get(match[1])
            return known[0] if known is not None and len(known[0]) < 500 else match[0]

        return _VARIABLE.sub(value, text).replace("{}", "") if "$" in text else text

    def _labels(self, text: str) -> frozenset[str]:
        """Return the labels of the paths, variables and downloaded files that a word names."""
        labels = set(labels_of_path(text))
        for name in _VARIABLE.findall(text):
            known = self.state.variables.get(name)
            labels |= known[1] if known is not None else labels_of_name(name)
        if (held := self.state.files.get(base_name(text.lstrip("@")))) is not None:
            labels |= held
        return frozenset(labels)

    def _output(self, command: Command, flowing: Output, inner: Output, at: tuple[int, int]) -> Output:
        """Return what a command writes to its pipe."""
        name, words = command.name, command.program[1:]
        if name in {"env", "printenv", "set"} or (not name and command.words[0] in {"env", "sudo"}):
            plain = [word for word in words if not word.startswith("-")]
            return Output(labels_of_name(plain[0]) if plain else frozenset({ENVIRONMENT}))
        if name in {"echo", "printf"}:
            text = self._expand(" ".join(word for word in words if word not in {"-n", "-e", "-ne", "-en", "%s"}))
            labels = frozenset[str]().union(*(self._labels(word) for word in words), inner.labels)
            return Output(labels - labels_of_path(text), inner.text if "\0" in text else text)
        if name in FETCHERS:
            address = self._address(command)
            saved = _saved_as(words, address)
            if saved:
                self.state.files[base_name(saved)] = frozenset({f"{REMOTE}:{address}"})
            return Output(frozenset({f"{REMOTE}:{address}"}) if address else frozenset())
        if name in {
            "grep",
            "awk",
            "cut",
            "sort",
            "wc",
            "jq",
            "uname",
            "whoami",
            "hostname",
            "id",
            "ps",
            "ifconfig",
            "systeminfo",
        }:
            kept = (
                frozenset(one for one in flowing.labels if not one.startswith(REMOTE))
                if name in {"jq", "wc"}
                else flowing.labels
            )
            own = (
                frozenset({HOST})
                if name in {"whoami", "hostname", "id", "ps", "ifconfig", "systeminfo"}
                else frozenset()
            )
            files = frozenset[str]().union(*(self._labels(word) for word in words)) if name != "jq" else frozenset()
            return Output(kept | own | inner.labels | files)
        if _DECODERS.search(command.text):
            return self._decoded(command, flowing, at)
        files = frozenset[str]().union(*(self._labels(word) for word in (*words, *command.sources)), inner.labels)
        files |= labels_of_path(command.text) & {PERSON}
        if name in {
            "cat",
            "tar",
            "zip",
            "cp",
            "mv",
            "head",
            "tail",
            "base64",
            "gzip",
            "find",
            "7z",
            "less",
            "tac",
            "openssl",
            "xxd",
        }:
            files |= {FILE} if words or command.sources else frozenset()
            if name in {"tar", "zip", "cp", "mv", "7z"} and words:
                for word in words:
                    if not word.startswith("-") and not labels_of_path(word):
                        self.state.files.setdefault(base_name(word), files)
        return Output(files | flowing.labels, command.document or None)

    def _decoded(self, command: Command, flowing: Output, at: tuple[int, int]) -> Output:
        text = flowing.text
        if text is None and "<<<" in command.words:
            text = command.words[command.words.index("<<<") + 1 :][:1][0] if command.words[-1] != "<<<" else None
        labels = flowing.labels | {DECODED}
        if text is None:
            return Output(labels)
        program = command.text
        hidden = (
            decode_hex(text) if "xxd" in program else rotated(text) if program.startswith("tr") else decode_base64(text)
        )
        if hidden is not None:
            self._read_again(hidden, "shell", "encoded text", at[0])
        return Output(labels, hidden)

    def _read_again(self, text: str, language: str, origin: str, line: int) -> None:
        if len(self.found) >= _MOST_FOUND or self._letters > _MOST_LETTERS:
            self.is_cut = True
            return
        part = self.part
        self._letters += len(text)
        self.found.append(
            Part(
                Kind.CODE,
                text,
                part.file,
                part.line + line,
                language,
                part.heading,
                part.lead,
                origin,
                hidden=part.hidden,
            )
        )

    def _address(self, command: Command) -> str:
        for word in command.program[1:]:
            expanded = self._expand(word)
            if "://" in expanded:
                return expanded[expanded.index("://") - 5 if expanded.index("://") >= 5 else 0 :].lstrip("='\" ")[:300]
        for word in command.program[1:]:
            if re.fullmatch(r"[\w-]+(?:\.[\w-]+)+(?::\d+)?(?:/\S*)?", word) and "/" in word:
                return "https://" + word
        return ""


def base_name(path: str) -> str:
    """Return the last part of a path that may be quoted."""
    return path.strip("'\"").rstrip("/").rpartition("/")[2]


def _saved_as(words: list[str], address: str) -> str:
    for index, word in enumerate(words[:-1]):
        if word in _OUTPUT or re.fullmatch(r"-\w*[oO]", word):
            if word in {"-O", "-LO", "-sLO", "-fsSLO", "-sO", "-OL"} and "://" in words[index + 1]:
                break
            return words[index + 1] if words[index + 1] not in {"-", "/dev/null"} else ""
    if any(re.fullmatch(r"-\w*O\w*|--remote-name", word) for word in words):
        return address.partition("?")[0]
    return ""
