"""Work out what expressions are in code that a grammar has read: constants are joined and decoded."""

from __future__ import annotations

import re
import shlex
from typing import Final

from tree_sitter import Node

from submissions.verification.engine.decoding import decode_base64, decode_hex, rotated
from submissions.verification.engine.grammars import calls_of
from submissions.verification.engine.values import DECODED, NOTHING, Value

_LONGEST: Final = 60_000
_DEEPEST: Final = 60
_MOST_STEPS: Final = 200_000
# Letters: what is worked out is forgotten beyond them, and what variables hold is cut.
_MOST_HELD: Final = 5_000_000
STRINGS: Final = frozenset(
    {
        "string", "template_string", "encapsed_string", "interpreted_string_literal", "raw_string_literal",
        "string_literal", "verbatim_string_literal", "interpolated_string_expression",
        "interpolated_string_literal", "heredoc", "nowdoc", "heredoc_body", "heredoc_content",
        "command_string", "subshell", "shell_command_expression", "expandable_string_literal",
        "verbatim_string_characters", "expandable_here_string_literal", "verbatim_here_string_characters",
    }
)  # fmt: skip
CALLS: Final = frozenset(
    {
        "call_expression", "new_expression", "call", "function_call_expression", "member_call_expression",
        "scoped_call_expression", "object_creation_expression", "invocation_expression",
        "method_call_expression", "ambiguous_function_call_expression", "macro_invocation", "command",
        "invokation_expression", "eval_expression", "func1op_call_expression",
    }
)  # fmt: skip
_FRAGMENTS: Final = frozenset(
    {
        "string_fragment", "string_content", "string_value", "interpreted_string_literal_content",
        "raw_string_literal_content", "string_literal_content", "heredoc_content", "nowdoc_string",
    }
)  # fmt: skip
_NAMES: Final = frozenset(["identifier", "variable_name", "scalar", "variable", "constant", "simple_name"])
_JOINS: Final = frozenset(
    {
        "binary_expression", "binary", "additive_expression", "additive_argument_expression",
    }
)  # fmt: skip
_ARRAYS: Final = frozenset(
    {
        "array", "array_creation_expression", "list_expression", "initializer_expression", "literal_value",
    }
)  # fmt: skip
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "e": "\x1b"}
_ESCAPE: Final = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u\{?([0-9a-fA-F]{1,6})\}?|([0-7]{3})|(.))", re.DOTALL)
_VARIABLE: Final = re.compile(r"\$\{?(\w+)\}?")
_LAST_NAME: Final = re.compile(r"(\w+)\W*$")


class GrammarValues:
    """The values of expressions in one tree; see ``GrammarFlows``, which follows them to what runs."""

    def __init__(self, source: bytes, language: str) -> None:
        self.source = source
        self.language = language
        self.calls = calls_of(language)
        self.known: dict[str, Value] = {}
        self.documents: dict[int, Node] = {}
        self._values: dict[int, Value] = {}
        self.is_cut = False
        self._depth = 0
        self._steps = 0
        self._held = 0
        self._bound = 0

    def text(self, node: Node) -> str:
        """Return the source of a node."""
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def name(self, node: Node) -> str:
        """Return the last name in a node that is assigned to, or that stands for a variable."""
        match = _LAST_NAME.search(self.text(node)[-120:])
        return match[1] if match is not None else ""

    def value(self, node: Node | None) -> Value:
        """Return what is known of an expression."""
        if node is None:
            return NOTHING
        if self._depth > _DEEPEST or self._steps > _MOST_STEPS:
            self.is_cut = True
            return NOTHING
        if node.id not in self._values:
            self._depth += 1
            self._steps += 1
            try:
                self._values[node.id] = self._value(node)
            finally:
                self._depth -= 1
            value = self._values[node.id]
            self._held += len(value.text or "")
            if self._held > _MOST_HELD:
                self.forget()
            return value
        return self._values[node.id]

    def bind(self, name: str, value: Value) -> None:
        """Give a variable a value; of all of them together so much text is kept."""
        self._bound += len(value.text or "") - len(self.known.get(name, NOTHING).text or "")
        if self._bound > _MOST_HELD:
            self.is_cut = True
            self._bound -= len(value.text or "")
            value = Value(None, value.labels)
        self.known[name] = value
        self.forget()

    def forget(self) -> None:
        """Work out values anew, because a variable has got another one."""
        self._values.clear()
        self._held = 0

    def callee(self, node: Node) -> tuple[str, Node | None]:
        """Return what a call names, without blanks, and its arguments."""
        given = node.child_by_field_name("arguments") or node.child_by_field_name("command_elements")
        if given is None:
            given = next((one for one in node.named_children if one.type in {"token_tree", "argument_list"}), None)
        end = given.start_byte if given is not None else node.end_byte
        if node.type == "eval_expression":
            return "eval", next(iter(node.named_children), None)
        called = self.source[max(node.start_byte, end - 200) : end].decode("utf-8", "replace")
        return "".join(called.split()).removeprefix("new").rstrip("!(?."), given

    def means(self, called: str, meaning: str) -> bool:
        """Return whether the name of a call ends in one that has this meaning in the language."""
        names = self.calls.get(meaning, ())
        return any(
            called.endswith(name) and not (called[: -len(name)] and re.match(r"\w", called[-len(name) - 1]))
            for name in names
        )

    def arguments(self, given: Node | None) -> list[Value]:
        """Return the values of arguments."""
        if given is None:
            return []
        if given.type in STRINGS or given.type in _NAMES or given.type in _JOINS or given.type in CALLS:
            return [self.value(given)]
        wanted = [one for one in given.named_children if one.type not in {"command_argument_sep", "command_parameter"}]
        return [self.value(one) for one in wanted[:200]]

    def _value(self, node: Node) -> Value:
        kind = node.type
        if (document := self.documents.get(node.start_byte)) is not None and kind in {
            "heredoc_beginning",
            "heredoc_token",
        }:
            return Value(self._plain(document)[:_LONGEST])
        if kind in STRINGS:
            return self._string(node)
        if kind in _NAMES:
            return self.known.get(self.name(node), NOTHING)
        if kind in CALLS:
            return self._call(node)
        if kind in _JOINS and len(node.named_children) >= 2:
            return self._joined(node)
        values = [self.value(one) for one in node.named_children[:500]]
        labels = frozenset[str]().union(*(one.labels for one in values))
        if kind in _ARRAYS:
            return Value(" ".join(shlex.quote(one.text) for one in values if one.text is not None)[:_LONGEST], labels)
        return values[0] if len(values) == 1 else Value(None, labels)

    def _plain(self, document: Node) -> str:
        lines = self.text(document).split("\n")
        return "\n".join(lines[:-1] if len(lines) > 1 and lines[-1].strip().isidentifier() else lines).strip("\n")

    def _string(self, node: Node) -> Value:
        if not node.named_children or node.type == "heredoc_body":
            return Value(self._bare(node)[:_LONGEST])
        pieces, labels = [], frozenset[str]()
        for one in node.named_children:
            if one.type in _FRAGMENTS and not one.named_children:
                pieces.append(_unescaped(self.text(one)) if "raw" not in node.type else self.text(one))
            elif "escape" in one.type or one.type in _FRAGMENTS:
                pieces.append(_unescaped(self.text(one)))
            elif "start" not in one.type and "end" not in one.type:
                value = self.value(one)
                # An unknown variable keeps its name, as a shell would look it up.
                pieces.append(self.text(one) if value.text is None else value.text)
                labels |= value.labels
        return Value("".join(pieces)[:_LONGEST], labels)

    def _bare(self, node: Node) -> str:
        text = self.text(node)
        if "here_string" in node.type:
            return "\n".join(text.split("\n")[1:-1])
        text = text.removeprefix("@")[1:-1] if len(text) > 1 else ""
        if self.language == "powershell" and "expandable" in node.type:
            text = _VARIABLE.sub(lambda match: self.known.get(match[1], NOTHING).text or match[0], text)
        return text

    def _joined(self, node: Node) -> Value:
        left, right = node.named_children[0], node.named_children[-1]
        between = self.source[left.end_byte : right.start_byte].decode("utf-8", "replace").strip()
        first, second = self.value(left), self.value(right)
        labels = first.labels | second.labels
        if between in {"+", ".", "..", "&", "<<"} and first.text is not None and second.text is not None:
            return Value((first.text + second.text)[:_LONGEST], labels)
        return Value(None, labels)

    def _call(self, node: Node) -> Value:
        called, given = self.callee(node)
        arguments = self.arguments(given)
        receiver = self.receiver(node)
        labels = receiver.labels.union(*(one.labels for one in arguments))
        first = arguments[0] if arguments else receiver
        if self.means(called, "decode") or self.means(called, "hex"):
            if first.text is None:
                return Value(None, labels | {DECODED})
            way = arguments[1].text if len(arguments) > 1 else ""
            if called.endswith("Buffer.from") and way not in {"base64", "hex", "base64url"}:
                return Value(first.text, labels)
            hexadecimal = way == "hex" or self.means(called, "hex")
            return Value(decode_hex(first.text) if hexadecimal else decode_base64(first.text), labels | {DECODED})
        if self.means(called, "turn"):
            return Value(rotated(first.text) if first.text is not None else None, labels | {DECODED})
        if self.means(called, "reverse"):
            text = receiver.text if receiver.text is not None else first.text
            return Value(text[::-1] if text is not None else None, labels | {DECODED})
        if called.endswith("fromCharCode") and given is not None:
            codes = re.findall(r"\b(?:0x[0-9a-fA-F]+|\d{1,3})\b", self.text(given)[:_LONGEST])
            return Value("".join(chr(int(one, 0)) for one in codes), labels | {DECODED})
        if self.means(called, "build"):
            words = [one.text for one in arguments if one.text is not None]
            return Value(" ".join([*filter(None, [receiver.text]), *map(shlex.quote, words)])[:_LONGEST], labels)
        if called.endswith(("join", "implode", "concat")) and (pieces := self._pieces(node, given)) is not None:
            return Value("".join(pieces)[:_LONGEST], labels)
        if self.means(called, "pass"):
            texts = [one.text for one in (receiver, *arguments) if one.text]
            return Value(max(texts, key=len) if texts else None, labels)
        return Value(None, labels)

    def receiver(self, node: Node) -> Value:
        """Return the value that a method is called on."""
        for name in ("receiver", "object", "invocant"):
            if (one := node.child_by_field_name(name)) is not None:
                return self.value(one)
        function = node.child_by_field_name("function")
        for name in ("object", "operand", "value", "expression"):
            if function is not None and (one := function.child_by_field_name(name)) is not None:
                return self.value(one)
        return NOTHING

    def _pieces(self, node: Node, given: Node | None) -> list[str] | None:
        """Return the texts of a list that is written out where it is joined with nothing between, if all are known."""
        function = node.child_by_field_name("function") or node
        inside = [*(function.named_children[:1]), *(given.named_children if given is not None else [])]
        for one in inside:
            while one.type in {"argument", "parenthesized_expression"} and one.named_children:
                one = one.named_children[0]
            if one.type in _ARRAYS:
                texts = [self.value(item).text for item in one.named_children]
                known = [text for text in texts if text is not None]
                return known if known and len(known) == len(texts) else None
        return None


def _unescaped(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        if match[1] or match[2]:
            number = int(match[1] or match[2], 16)
            return chr(number) if number < 0x110000 else ""
        if match[3]:
            return chr(int(match[3], 8))
        return _ESCAPES.get(match[4], match[4])

    return _ESCAPE.sub(plain, text) if "\\" in text else text
