"""Print the mutants of modules as JSON: ``python -m tests.mutants.make every|one MODULE...``.

Runs in the virtual environment that has cosmic-ray, in the folder with the modules; changes no file.
"""

from __future__ import annotations

import ast
import json
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.mutants.choose import Place, chosen


def main() -> None:
    every = sys.argv[1] == "every"
    made = {module: mutants_of(module, Path(module).read_text(encoding="utf-8"), every) for module in sys.argv[2:]}
    json.dump(made, sys.stdout)


def mutants_of(module: str, source: str, every: bool) -> list[dict[str, Any]]:
    """Return the chosen mutants of a module: what changed, in which line, and the whole text after the change."""
    plugins = import_module("cosmic_ray.plugins")
    parsed = import_module("cosmic_ray.ast")
    mutate_code = import_module("cosmic_ray.mutating").mutate_code
    # Operators that need arguments are for cases of one's own.
    operators = {
        name: plugins.get_operator(name)()
        for name in plugins.operator_names()
        if not plugins.get_operator(name).arguments()
    }
    nodes = list(parsed.ast_nodes(parsed.get_ast(source)))
    places = [
        Place(name, occurrence, start, end)
        for name, operator in operators.items()
        for occurrence, (start, end) in enumerate(
            position for node in nodes for position in operator.mutation_positions(node)
        )
    ]
    made: list[dict[str, Any]] = []
    for place in chosen(module, source, places, every=every):
        # ExceptionReplacer takes the class of `except` for a bare name, and cannot change a dotted one.
        with suppress(AttributeError):
            text = mutate_code(source, operators[place.operator], place.occurrence)
            if compiles(text):
                made.append({"operator": place.operator.partition("/")[2], "line": place.start[0], "text": text})
    return made


def compiles(text: str) -> bool:
    """Return whether a mutant is Python: the star of keyword-only arguments is no operator, and is replaced as one."""
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


if __name__ == "__main__":
    main()
