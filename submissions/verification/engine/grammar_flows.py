"""Find what code in other languages runs, writes and decodes, by the grammar of its language and one table of calls."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Final

from tree_sitter import Node

from submissions.verification.engine.grammar_values import CALLS, GrammarValues
from submissions.verification.engine.grammars import LONGEST, parse
from submissions.verification.engine.guessing import guess_language
from submissions.verification.engine.parts import Kind, Part, Sign
from submissions.verification.engine.values import DECODED, NOTHING, Value
from submissions.verification.engine.vocabulary import SCRIPT_LANGUAGES

_MOST_NODES: Final = 60_000
_MOST_FOUND: Final = 200
_ASSIGNMENTS: Final = frozenset(
    {
        "variable_declarator", "assignment_expression", "assignment", "short_var_declaration", "var_spec",
        "const_spec", "let_declaration", "augmented_assignment_expression", "operator_assignment",
        "const_item",
    }
)  # fmt: skip
_COMMANDS: Final = frozenset(["command_string", "subshell", "shell_command_expression"])
_WORDS: Final = re.compile(r"[\s|;&]")


class GrammarFlows:
    """Find signs in one part of code; the code that it runs or writes is in ``found``.

    ``is_read`` is false for what its parser gave up, ``is_cut`` is true where values were not followed to their ends.
    """

    def __init__(self, part: Part) -> None:
        self.part = part
        self.signs: list[Sign] = []
        self.found: list[Part] = []
        self.is_read = True
        self.is_cut = False

    def run(self) -> list[Sign]:
        """Return the signs of the part, in order; of a long one those of its beginning."""
        text = self.part.text[:LONGEST]
        tree = parse(text, self.part.language)
        if tree is None:
            self.is_read = False
            return []
        values = GrammarValues(text.encode("utf-8", "replace"), self.part.language)
        nodes = list(_nodes(tree.root_node))
        begun = [one for one in nodes if one.type in {"heredoc_beginning", "heredoc_token"}]
        bodies = [one for one in nodes if one.type == "heredoc_body" or _is_perl_document(one)]
        values.documents = {one.start_byte: body for one, body in zip(begun, bodies, strict=False)}
        for node in nodes:
            if node.type in _ASSIGNMENTS:
                self._assigned(node, values)
            elif node.type in CALLS:
                self._called(node, values)
            elif node.type in _COMMANDS and (command := values.value(node).text):
                self._read(command, "shell", "command of a program", node)
        self.is_cut = values.is_cut
        return self.signs

    def _sign(self, name: str, node: Node, values: GrammarValues) -> None:
        line = node.start_point[0]
        excerpt = values.text(node).split("\n")[0].strip()[:240]
        self.signs.append(Sign(name, self.part, self.part.line + (0 if self.part.origin else line), excerpt))

    def _read(self, text: str, language: str, origin: str, node: Node) -> None:
        part = self.part
        if len(self.found) < _MOST_FOUND and text.strip() and text.strip() != part.text.strip():
            line = part.line + (0 if part.origin else node.start_point[0])
            self.found.append(
                Part(
                    Kind.CODE,
                    text,
                    part.file,
                    line,
                    language,
                    part.heading,
                    part.lead,
                    origin,
                    hidden=part.hidden,
                    starts_itself=part.starts_itself,
                )
            )

    def _assigned(self, node: Node, values: GrammarValues) -> None:
        left = next(filter(None, map(node.child_by_field_name, ("name", "left", "pattern"))), None)
        right = next(filter(None, map(node.child_by_field_name, ("value", "right"))), None)
        children = node.named_children
        left = left or (children[0] if children else None)
        right = right or (children[-1] if len(children) > 1 else None)
        if left is None or right is None:
            return
        name, value = values.name(left), values.value(right)
        if node.type in {"augmented_assignment_expression", "operator_assignment"}:
            before = values.known.get(name, NOTHING)
            text = before.text + value.text if before.text is not None and value.text is not None else None
            value = Value(text[:LONGEST] if text is not None else None, before.labels | value.labels)
        if name and values.known.get(name, NOTHING) != value:
            values.bind(name, value)

    def _called(self, node: Node, values: GrammarValues) -> None:
        called, given = values.callee(node)
        if values.means(called, "run"):
            receiver = values.receiver(node)
            if receiver.text:
                self._command([receiver.text], receiver.labels, node, values)
            return
        meaning = next((one for one in ("shell", "code", "write") if values.means(called, one)), "")
        if not meaning:
            return
        arguments = values.arguments(given)
        if meaning == "write":
            self._written(arguments, node)
            return
        labels = frozenset[str]().union(*(one.labels for one in arguments))
        texts = [one.text for one in arguments if one.text]
        if meaning == "shell":
            name = called if self.part.language == "powershell" else ""
            self._command([*filter(None, [name]), *texts], labels, node, values)
            return
        if DECODED in labels:
            self._sign("decoded-code-run", node, values)
        for text in texts[-1:]:
            self._read(text, self.part.language, "text that is run", node)

    def _command(self, texts: list[str], labels: frozenset[str], node: Node, values: GrammarValues) -> None:
        if DECODED in labels:
            self._sign("decoded-code-run", node, values)
        if not texts:
            return
        # The words of a list are quoted already; other arguments are words by themselves.
        words = [text if text.startswith(("'", "-")) or " -" in text[:3] else shlex.quote(text) for text in texts[1:]]
        if texts[0].rpartition("/")[2] in {"bash", "sh", "zsh", "cmd", "cmd.exe", "wsl"} and len(texts) > 1:
            last = texts[-1]
            # The words of a list are one text, whose last word is the command.
            command = (_split(last) or [last])[-1] if last.startswith("-") else last
            self._read(command, "shell", "command of a program", node)
        elif _WORDS.search(texts[0]) is not None or words:
            self._read(" ".join([texts[0], *words]), "shell", "command of a program", node)

    def _written(self, arguments: list[Value], node: Node) -> None:
        if len(arguments) < 2 or not (text := arguments[1].text) or "\n" not in text.strip("\n"):
            return
        suffix = (arguments[0].text or "").rpartition(".")[2].lower()
        if language := SCRIPT_LANGUAGES.get(suffix, "") or guess_language(text):
            self._read(text, language, "file that is written", node)


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return []


def _is_perl_document(node: Node) -> bool:
    return node.type == "heredoc_content" and (node.parent is None or node.parent.type != "heredoc_body")


def _nodes(root: Node) -> Iterator[Node]:
    """Yield the named nodes of a tree in the order of the source, as many as are read."""
    waiting = [root]
    for _number in range(_MOST_NODES):
        if not waiting:
            return
        node = waiting.pop()
        yield node
        waiting += reversed(node.named_children)
