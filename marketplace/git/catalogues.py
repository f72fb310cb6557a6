"""Catalogues of plugins, as Claude Code, Codex and Cursor read them from a repository.

A plugin is a folder with one skill in it. What the skill itself holds lies below ``skills/``, where no client takes
it for hooks, commands or servers of the plugin.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, Protocol

import msgspec

OWNER: Final = {"name": "vskill"}
_SKILLS: Final = "./skills/"
_MANIFESTS: Final = (".claude-plugin/plugin.json", ".codex-plugin/plugin.json", ".cursor-plugin/plugin.json")


class _Version(Protocol):
    @property
    def version(self) -> str: ...
    @property
    def description(self) -> str: ...


class _Plugin(Protocol):
    @property
    def slug(self) -> str: ...
    @property
    def version(self) -> _Version: ...


def plugin_folder(slug: str) -> str:
    """Return the path of a plugin in a repository."""
    return f"plugins/{slug}"


def plugin_files(plugin: _Plugin) -> dict[str, bytes]:
    """Return the manifests of a plugin by their paths in a repository."""
    manifest = _written(
        {
            "name": plugin.slug,
            "version": plugin.version.version,
            "description": described(plugin),
            "author": OWNER,
            "skills": _SKILLS,
        }
    )
    return {f"{plugin_folder(plugin.slug)}/{path}": manifest for path in _MANIFESTS}


def catalogue_files(name: str, plugins: Sequence[_Plugin]) -> dict[str, bytes]:
    """Return the catalogues called ``name`` of all plugins of a repository, by their paths in it."""
    local = [
        {"name": one.slug, "source": f"./{plugin_folder(one.slug)}", "description": described(one)} for one in plugins
    ]
    for_codex = [
        {
            "name": one.slug,
            "source": {"source": "local", "path": f"./{plugin_folder(one.slug)}"},
            "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
            "category": "Productivity",
        }
        for one in plugins
    ]
    about = "Skills that a vskill registry publishes."
    shared = _written({"name": name, "owner": OWNER, "metadata": {"description": about}, "plugins": local})
    return {
        ".claude-plugin/marketplace.json": shared,
        ".cursor-plugin/marketplace.json": shared,
        ".agents/plugins/marketplace.json": _written(
            {"name": name, "interface": {"displayName": name}, "plugins": for_codex}
        ),
    }


def described(plugin: _Plugin) -> str:
    """Return the description of a plugin, which is never empty."""
    return plugin.version.description.strip() or plugin.slug


def _written(value: dict[str, Any]) -> bytes:
    # The standard library indents a hundred times more slowly than it encodes.
    return msgspec.json.format(json.dumps(value).encode(), indent=2) + b"\n"
