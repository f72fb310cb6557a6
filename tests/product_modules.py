"""The modules of the product, as the tests about its layout and its texts read them."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# From the ground floor up; a package imports from the ones before it.
FLOORS = ("vskill", "marketplace", "submissions")
# Skills of the demo: content that is submitted, no module of ours.
CONTENT = ROOT / "submissions" / "demo" / "skills"


@dataclass(frozen=True)
class Module:
    name: str
    path: Path
    is_package: bool

    @property
    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_text(encoding="utf-8"), str(self.path))


@cache
def modules() -> dict[str, Module]:
    found = {}
    for top in FLOORS:
        for path in sorted((ROOT / top).rglob("*.py")):
            if path.is_relative_to(CONTENT):
                continue
            parts = path.relative_to(ROOT).with_suffix("").parts
            is_package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if is_package else parts)
            found[name] = Module(name, path, is_package)
    return found
