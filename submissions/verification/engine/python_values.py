"""Work out what expressions of Python are: constants are joined and decoded, labels are carried along."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, Final

from submissions.verification.engine.parts import Kind, Part, Sign
from submissions.verification.engine.values import (
    ENVIRONMENT,
    NOTHING,
    Functions,
    Value,
    labels_of_name,
)

_LONGEST: Final = 40_000
_DEEPEST: Final = 150
# Of one part, which is read twice.
_MOST_STEPS: Final = 2_000_000


class PythonValues(ast.NodeVisitor):
    """The values of expressions in one part of Python; see ``PythonFlows``, which follows statements and calls."""

    def __init__(self, part: Part, known: Functions) -> None:
        self.part = part
        self.known = known
        self.signs: dict[tuple[str, int, str], Sign] = {}
        self.found: list[Part] = []
        self._lines = part.text.split("\n")
        self._scopes: list[dict[str, Value]] = [{}]
        self._function = ""
        self._parameters = known.parameters
        self._given = known.given
        self._imported: dict[str, str] = {}
        self._last = False
        self._in_class = False
        self._depth = 0
        self._steps = 0
        self.is_cut = False
        self._visitors: dict[type[ast.AST], Callable[[Any], None]] = {}
        self._handlers: dict[type[ast.AST], Callable[[Any], Value]] = {}

    def _sign(self, name: str, node: ast.AST, detail: str = "") -> None:
        offset = getattr(node, "lineno", 1) - 1
        excerpt = self._lines[offset].strip()[:240] if offset < len(self._lines) else ""
        line = self.part.line + (0 if self.part.origin else offset)
        self.signs.setdefault((name, line, detail), Sign(name, self.part, line, excerpt, detail))

    def _read_again(self, text: str, language: str, origin: str, node: ast.AST) -> None:
        if self._last and len(self.found) < 200:
            part = self.part
            line = part.line + (0 if part.origin else getattr(node, "lineno", 1) - 1)
            self.found.append(Part(Kind.CODE, text, part.file, line, language, part.heading, part.lead, origin))

    def _bind(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self._scopes[-1][target.id] = value
            if self._in_class:
                self._scopes[0][f".{target.id}"] = value
        elif isinstance(target, ast.Attribute):
            self._scopes[0][f".{target.attr}"] = value
        elif isinstance(target, ast.Subscript):
            # What is put into a container is in the container.
            self._bind(
                target.value,
                Value(None, self._value(target.value).labels | value.labels | self._value(target.slice).labels),
            )
        elif isinstance(target, (ast.Tuple, ast.List)):
            for one in target.elts:
                self._bind(one, value)
        elif isinstance(target, ast.Starred):
            self._bind(target.value, value)

    def visit(self, node: ast.AST) -> None:
        """Follow a node by what its kind is; this is asked for every statement."""
        kind = type(node)
        visitor = self._visitors.get(kind)
        if visitor is None:
            visitor = self._visitors[kind] = getattr(self, f"visit_{kind.__name__}", self.generic_visit)
        visitor(node)

    def _value(self, node: ast.AST | None) -> Value:
        if node is None:
            return NOTHING
        self._steps += 1
        if self._depth >= _DEEPEST or self._steps > _MOST_STEPS:
            self.is_cut = True
            return NOTHING
        kind = type(node)
        try:
            handler = self._handlers[kind]
        except KeyError:
            handler = self._handlers[kind] = getattr(self, f"_value_{kind.__name__}", self._value_of_parts)
        self._depth += 1
        try:
            return handler(node)
        finally:
            self._depth -= 1

    def _value_of_parts(self, node: ast.AST) -> Value:
        labels = frozenset[str]()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.expr, ast.comprehension)):
                labels |= self._value(child).labels
        return Value(None, labels) if labels else NOTHING

    def _value_Constant(self, node: ast.Constant) -> Value:  # noqa: N802 - named for the node
        if isinstance(node.value, str):
            return Value(node.value[:_LONGEST])
        if isinstance(node.value, bytes):
            return Value(node.value[:_LONGEST].decode("latin-1"))
        return NOTHING

    def _value_Name(self, node: ast.Name) -> Value:  # noqa: N802 - named for the node
        for scope in reversed(self._scopes):
            if node.id in scope:
                return scope[node.id]
        return NOTHING

    def _value_Attribute(self, node: ast.Attribute) -> Value:  # noqa: N802 - named for the node
        if self._name(node) == "os.environ":
            return Value(None, frozenset({ENVIRONMENT}))
        base = self._value(node.value)
        kept = self._scopes[0].get(f".{node.attr}", NOTHING)
        return kept if kept is not NOTHING else Value(None, base.labels)

    def _value_Subscript(self, node: ast.Subscript) -> Value:  # noqa: N802 - named for the node
        base, index = self._value(node.value), self._value(node.slice)
        if ENVIRONMENT in base.labels and self._name(node.value) == "os.environ":
            return Value(None, labels_of_name(index.text or ""))
        if base.text is not None and isinstance(node.slice, ast.Slice) and ast.unparse(node.slice) == "::-1":
            return Value(base.text[::-1], base.labels)
        return Value(None, base.labels)

    def _value_BinOp(self, node: ast.BinOp) -> Value:  # noqa: N802 - named for the node
        left, right = self._value(node.left), self._value(node.right)
        text = None
        if isinstance(node.op, ast.Add) and left.text is not None and right.text is not None:
            text = (left.text + right.text)[:_LONGEST]
        elif isinstance(node.op, ast.Div) and right.text is not None:
            # Paths are joined with a slash.
            text = f"{left.text or '~'}/{right.text}"
        elif isinstance(node.op, ast.Mod) and left.text is not None:
            text = left.text
        return Value(text, left.labels | right.labels)

    def _value_JoinedStr(self, node: ast.JoinedStr) -> Value:  # noqa: N802 - named for the node
        values = [self._value(one.value if isinstance(one, ast.FormattedValue) else one) for one in node.values]
        text = "".join("{}" if one.text is None else one.text for one in values)
        return Value(text[:_LONGEST], frozenset[str]().union(*[one.labels for one in values]))

    def _value_NamedExpr(self, node: ast.NamedExpr) -> Value:  # noqa: N802 - named for the node
        value = self._value(node.value)
        self._bind(node.target, value)
        return value

    def _value_comprehension(self, node: ast.comprehension) -> Value:
        value = self._value(node.iter)
        self._bind(node.target, value)
        return value

    def _value_ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:  # noqa: N802 - named for the node
        for one in node.generators:
            self._value(one)
        return Value(None, self._value(node.elt).labels)

    _value_SetComp = _value_GeneratorExp = _value_ListComp  # noqa: N815 - named for the nodes

    def _value_DictComp(self, node: ast.DictComp) -> Value:  # noqa: N802 - named for the node
        for one in node.generators:
            self._value(one)
        return self._value(node.key) | self._value(node.value)

    def _value_Dict(self, node: ast.Dict) -> Value:  # noqa: N802 - named for the node
        # Each once: dictionaries within each other would cost a power of their depth.
        keys = [self._value(one) for one in node.keys if one is not None]
        values = [self._value(one) for one in node.values]
        joined = " ".join([one.text for one in values if one.text is not None])[:_LONGEST]
        return Value(joined, frozenset[str]().union(*[one.labels for one in (*keys, *values)]))

    def _value_IfExp(self, node: ast.IfExp) -> Value:  # noqa: N802 - named for the node
        self._value(node.test)
        return self._value(node.body) | self._value(node.orelse)

    def _value_Lambda(self, node: ast.Lambda) -> Value:  # noqa: N802 - named for the node
        return self._value(node.body)

    def _value_List(self, node: ast.List | ast.Tuple | ast.Set) -> Value:  # noqa: N802 - named for the node
        return self._listed([self._value(one) for one in node.elts])

    def _listed(self, values: Sequence[Value]) -> Value:
        joined = " ".join([one.text for one in values if one.text is not None])[:_LONGEST]
        # A list of paths stands for what lies there, a list of words for a command.
        return Value(joined, frozenset[str]().union(*[one.labels for one in values]))

    _value_Tuple = _value_Set = _value_List  # noqa: N815 - named for the nodes

    def _name(self, node: ast.expr) -> str:
        """Return the dotted name of an expression with imports resolved; '' where it has none."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return "." + parts[0] if parts else ""
        return ".".join([self._imported.get(node.id, node.id), *reversed(parts)])

    def _value_Call(self, node: ast.Call) -> Value:  # noqa: N802 - named for the node
        raise NotImplementedError
