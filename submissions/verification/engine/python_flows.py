"""Follow values through Python code: constants are joined and decoded, sources are followed to sinks."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from submissions.verification.engine.guessing import guess_language
from submissions.verification.engine.hosts import is_local, urls_in
from submissions.verification.engine.parts import Kind, Part, Sign
from submissions.verification.engine.python_calls import (
    BODY_ARGUMENTS,
    CALLED,
    EXECUTES,
    PASSES,
    SENDS,
    SHELL_CALLS,
    called_value,
)
from submissions.verification.engine.python_values import PythonValues
from submissions.verification.engine.shell_rules import write_signs
from submissions.verification.engine.values import (
    DECODED,
    FILE,
    NOTHING,
    REMOTE,
    Value,
    labels_of_name,
    labels_of_path,
    send_rule,
)

_LONGEST: Final = 40_000
_PASSES: Final = 2


@lru_cache(maxsize=8)
def _tree(text: str) -> ast.Module:
    """Return the tree of a script; those that use each other are read several times."""
    return ast.parse(text)


class PythonFlows(PythonValues):
    """Find signs in one part of Python; shell commands and code inside it are in ``found``.

    ``known`` is what other files have told of the skill's functions; this adds to it. Names are followed
    within a function and, failing that, within the file; attributes by their last name.
    """

    def run(self) -> list[Sign]:
        """Return the signs; raises SyntaxError, ValueError or RecursionError for what Python does not parse."""
        tree = _tree(self.part.text) if len(self.part.text) < _LONGEST else ast.parse(self.part.text)
        for number in range(_PASSES):
            self._last = number == _PASSES - 1
            self._scopes = [self._scopes[0]]
            self.visit(tree)
        return list(self.signs.values())

    def visit_Import(self, node: ast.Import) -> None:  # noqa: N802 - the name that ast looks for
        """Remember what names of modules mean."""
        for alias in node.names:
            self._imported[alias.asname or alias.name.partition(".")[0]] = (
                alias.name if alias.asname else alias.name.partition(".")[0]
            )

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:  # noqa: N802 - the name that ast looks for
        """Remember what names of functions mean."""
        for alias in node.names:
            self._imported[alias.asname or alias.name] = f"{node.module or ''}.{alias.name}"

    def visit_ClassDef(self, node: ast.ClassDef) -> None:  # noqa: N802 - the name that ast looks for
        """Follow a class, whose names are attributes."""
        for statement in node.body:
            self._in_class = isinstance(statement, (ast.Assign, ast.AnnAssign))
            self.visit(statement)
        self._in_class = False

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:  # noqa: N802 - the name that ast looks for
        """Follow a function with what its callers in this file give it."""
        if self._last and (told := ast.get_docstring(node)) and len(told) > 60:
            # An agent reads what a tool says of itself.
            part = self.part
            self.found.append(
                Part(
                    Kind.PROSE,
                    told,
                    part.file,
                    part.line + (0 if part.origin else node.lineno),
                    "",
                    part.heading,
                    part.lead,
                    "description of a function",
                )
            )
        names = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        self._parameters[node.name] = [name for name in names if name not in {"self", "cls"}]
        scope = {name: self._given.get((node.name, name), NOTHING) for name in names}
        above, self._function = self._function, node.name
        self._scopes.append(scope)
        for statement in node.body:
            self.visit(statement)
        self._scopes.pop()
        self._function = above

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - the name that ast looks for

    def visit_Return(self, node: ast.Return) -> None:  # noqa: N802 - the name that ast looks for
        """Remember what a function returns, for its callers in every file."""
        value = self._value(node.value)
        if self._function and value.labels:
            self.known.returned[self._function] = self.known.returned.get(self._function, NOTHING) | value

    visit_Yield = visit_Return  # type: ignore[assignment]  # noqa: N815 - a yield has a value like a return

    def visit_Assign(self, node: ast.Assign) -> None:  # noqa: N802 - the name that ast looks for
        """Bind names."""
        value = self._value(node.value)
        for target in node.targets:
            self._bind(target, value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:  # noqa: N802 - the name that ast looks for
        """Bind a name."""
        if node.value is not None:
            self._bind(node.target, self._value(node.value))

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:  # noqa: N802 - the name that ast looks for
        """Bind a name inside an expression."""
        self._value(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:  # noqa: N802 - the name that ast looks for
        """Join a value to the one that a name has."""
        left, right = self._value(node.target), self._value(node.value)
        text = (
            left.text + right.text
            if left.text is not None and right.text is not None and isinstance(node.op, ast.Add)
            else None
        )
        self._bind(
            node.target, Value(text if text is None or len(text) < _LONGEST else None, left.labels | right.labels)
        )

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:  # noqa: N802 - the name that ast looks for
        """Bind the name of a loop to whatever it runs over."""
        self._bind(node.target, self._value(node.iter))
        self._all(node.body)
        self._all(node.orelse)

    visit_AsyncFor = visit_For  # noqa: N815 - the name that ast looks for

    def visit_With(self, node: ast.With | ast.AsyncWith) -> None:  # noqa: N802 - the name that ast looks for
        """Bind what is opened."""
        for item in node.items:
            value = self._value(item.context_expr)
            if item.optional_vars is not None:
                self._bind(item.optional_vars, value)
        self._all(node.body)

    visit_AsyncWith = visit_With  # noqa: N815 - the name that ast looks for

    def visit_Expr(self, node: ast.Expr) -> None:  # noqa: N802 - the name that ast looks for
        """Follow an expression that stands by itself."""
        self._value(node.value)

    def generic_visit(self, node: ast.AST) -> None:
        """Follow expressions as values, and everything else by its parts."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._value(child)
            else:
                self.visit(child)

    def _all(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self.visit(statement)

    def _value_Call(self, node: ast.Call) -> Value:  # noqa: N802 - named for the node
        name = self._name(node.func)
        last = name.rpartition(".")[2]
        receiver = self._value(node.func.value) if isinstance(node.func, ast.Attribute) else NOTHING
        listed = node.args[0] if last == "join" and node.args else None
        elements = [self._value(one) for one in listed.elts] if isinstance(listed, ast.List | ast.Tuple) else None
        # What is joined is worked out once: lists within each other would cost a power of their depth.
        arguments = [] if elements is None else [self._listed(elements)]
        arguments += [self._value(one) for one in node.args[len(arguments) :]]
        named = {one.arg or "**": self._value(one.value) for one in node.keywords}
        if name in {"os.getenv", "os.environ.get", "getenv", "os.environ.pop"} and arguments:
            return Value(None, labels_of_name(arguments[0].text or ""))
        if not isinstance(node.func, (ast.Attribute, ast.Name)):
            self._value(node.func)
        if self._last:
            self._sinks(node, (name, receiver), arguments, named)
        if last in {"copy", "copy2", "copyfile", "move"} and len(node.args) > 1:
            copied = arguments[0].labels | labels_of_path(arguments[0].text or "")
            self._bind(node.args[1], Value(arguments[1].text, arguments[1].labels | copied))
        given = [*arguments, *named.values()]
        for position, parameter in enumerate(self._parameters.get(last, ())):
            value = arguments[position] if position < len(arguments) else named.get(parameter)
            if value is not None and (value.labels or labels_of_path(value.text or "")):
                key = (last, parameter)
                self._given[key] = self._given.get(key, NOTHING).beside(value)
        if last in {"append", "extend", "add", "update", "write", "writestr", "insert", "put"} and isinstance(
            node.func, ast.Attribute
        ):
            labels = frozenset[str]().union(*(one.labels for one in given)) - {REMOTE}
            if labels:
                self._bind(node.func.value, Value(None, receiver.labels | labels))
        if elements and receiver.text is not None:
            texts = [one.text for one in elements if one.text is not None]
            if len(texts) == len(elements):
                return Value(receiver.text.join(texts)[:_LONGEST], arguments[0].labels)
        if self._last and last in {"write", "write_text", "write_bytes", "writelines"} and arguments:
            self._kept(node, arguments[0].text or "")
        made = called_value(name, receiver, arguments)
        if made is not None:
            return made
        if last in self.known.returned or (last in self._parameters and last not in PASSES):
            return Value(None, self.known.returned.get(last, NOTHING).labels)
        if last in PASSES or name in PASSES:
            labels = receiver.labels.union(*(one.labels for one in given)) - {REMOTE if last in CALLED else ""}
            return Value(None, labels)
        return NOTHING

    def _sinks(
        self, node: ast.Call, called: tuple[str, Value], arguments: list[Value], named: dict[str, Value]
    ) -> None:
        name, receiver = called
        last = name.rpartition(".")[2]
        first = arguments[0] if arguments else named.get("args", named.get("url", NOTHING))
        if name in EXECUTES:
            for label in sorted(first.labels):
                if label == DECODED:
                    self._sign("decoded-code-run", node)
                elif label.startswith(REMOTE) and not _all_local(label):
                    self._sign("downloaded-code-run", node, label.partition(":")[2])
            if first.text is not None and len(first.text) > 3:
                self._read_again(first.text, "python", "constants joined", node)
        elif name in SHELL_CALLS:
            if any(label.startswith(REMOTE) and not _all_local(label) for label in first.labels):
                self._sign("downloaded-code-run", node, "")
            if DECODED in first.labels:
                self._sign("decoded-code-run", node)
            if first.text is not None and len(first.text) > 3:
                self._read_again(first.text, "shell", "command of Python", node)
        elif name in SENDS or (
            last in {"post", "put", "sendall", "send", "sendto", "sendmail", "send_message"}
            and not name.startswith(("app.", "router."))
        ):
            body = [value for key, value in named.items() if key in BODY_ARGUMENTS]
            position = 0 if last in {"sendall", "send", "sendto"} else 2 if last == "sendmail" else 1
            body += arguments[position:]
            address = (first if last not in {"sendall", "send", "sendto"} else NOTHING).text or ""
            url_labels = frozenset(one for one in first.labels if not one.startswith(("token:", REMOTE, FILE)))
            labels = frozenset[str]().union(
                *(one.labels for one in body), url_labels if last not in {"sendall", "send"} else frozenset()
            )
            if DECODED in first.labels and (labels or last in {"post", "put"}):
                self._sign("hidden-address", node, address[:200])
            if rule := send_rule(labels, address):
                self._sign(rule, node, address[:200])
            self._sign("sends", node, address[:200])
        elif last in {"open", "write_text", "write_bytes", "Path"} or name == "open":
            self._written(node, last, receiver, arguments)
        if last in {"gethostbyname", "resolve", "getaddrinfo", "query"} and any(
            not one.startswith((REMOTE, FILE)) for one in first.labels
        ):
            self._sign("secret-in-lookup", node, name)

    def _kept(self, node: ast.Call, text: str) -> None:
        """Read again what is written to a file where it looks like code."""
        if "\n" in text and (language := guess_language(text)):
            self._read_again(text, language, "file that is written", node)

    def _written(self, node: ast.Call, last: str, receiver: Value, arguments: list[Value]) -> None:
        """Note a file that is opened for writing where that changes what runs later."""
        if last.startswith("write_"):
            path, content = receiver.text or "", arguments[0].text if arguments else ""
        else:
            mode = arguments[1].text if len(arguments) > 1 else None
            if not mode or mode[0] not in "wa":
                return
            path, content = (arguments[0].text or "") if arguments else "", ""
        for name, detail in write_signs(path, content or "$("):
            self._sign(name, node, detail)


def _all_local(label: str) -> bool:
    hosts = urls_in(label)
    return bool(hosts) and all(is_local(host) for host, _path in hosts)
