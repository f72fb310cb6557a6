"""Whatever is public says what it does, and what its arguments are."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.product_modules import modules

# From so many parameters on, a docstring has to name at least half of them.
MANY = 4
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Defined = _Function | ast.ClassDef
# Decorators of an overload, of the rest of a property, and of what is described where it is declared.
_DESCRIBED_ELSEWHERE = {"overload", "override", "setter", "deleter"}


@dataclass(frozen=True)
class Public:
    """A function, class or method that other modules may use."""

    name: str
    node: _Defined

    @property
    def docstring(self) -> str:
        return ast.get_docstring(self.node) or ""

    @property
    def parameters(self) -> list[str]:
        """Return the names of the parameters but for self and cls, and for those that are there to be ignored."""
        if isinstance(self.node, ast.ClassDef):
            return []
        arguments = self.node.args
        names = [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        return [name for name in names if name not in ("self", "cls") and not name.startswith("_")]


def public() -> Iterator[Public]:
    for name, module in modules().items():
        # Migrations are written by makemigrations.
        if ".migrations" not in name:
            yield from _within(name, module.tree)


def _within(name: str, parent: ast.Module | ast.ClassDef) -> Iterator[Public]:
    """Yield what a module or a class defines, but nothing that is defined inside a function."""
    for node in _definitions(parent.body):
        inner = f"{name}.{node.name}"
        if node.name.startswith("_") or node.name == "Meta" or _decorators(node) & _DESCRIBED_ELSEWHERE:
            continue
        yield Public(inner, node)
        if isinstance(node, ast.ClassDef) and not _is_protocol(node):
            yield from _within(inner, node)


def _definitions(body: list[ast.stmt]) -> Iterator[_Defined]:
    for node in body:
        if isinstance(node, _Defined):
            yield node
        elif isinstance(node, ast.If):
            # if TYPE_CHECKING: or if sys.platform == ...:
            yield from _definitions([*node.body, *node.orelse])


def _decorators(node: _Defined) -> set[str]:
    """Return the last parts of the decorators' names."""
    names = (one.func if isinstance(one, ast.Call) else one for one in node.decorator_list)
    return {ast.unparse(name).rpartition(".")[2] for name in names}


def _is_protocol(node: ast.ClassDef) -> bool:
    return any(re.fullmatch(r"(\w+\.)?Protocol(\[.*\])?", ast.unparse(base)) for base in node.bases)


def test_there_is_something_public() -> None:
    assert len(list(public())) > 500


def test_all_that_is_public_has_a_docstring() -> None:
    assert [one.name for one in public() if not one.docstring] == []


def test_a_function_with_many_parameters_names_half_of_them_in_its_docstring() -> None:
    strays = []
    for one in public():
        parameters = one.parameters
        named = [name for name in parameters if re.search(rf"\b{re.escape(name)}\b", one.docstring)]
        if len(parameters) >= MANY and 2 * len(named) < len(parameters):
            unnamed = ", ".join(name for name in parameters if name not in named)
            strays.append(f"{one.name} says nothing of {unnamed}")
    assert strays == []
