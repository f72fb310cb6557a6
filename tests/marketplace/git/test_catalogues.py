"""Manifests and catalogues are the same bytes whatever writes them, because commits are made of them."""

from __future__ import annotations

import json
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from marketplace.git.catalogues import catalogue_files, plugin_files


@dataclass(frozen=True)
class Version:
    version: str
    description: str


@dataclass(frozen=True)
class Plugin:
    slug: str
    version: Version


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
plugins = st.builds(Plugin, st.from_regex(r"[a-z0-9-]{1,20}", fullmatch=True), st.builds(Version, texts, texts))


# What cursor/plugins publishes on GitHub as JSON schemas of the two files, as far as ours go; they allow nothing else.
NAMED = {"type": "string", "pattern": r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"}
SAID = {"type": "string", "minLength": 1}
WHOM = {"type": "object", "required": ["name"], "additionalProperties": False, "properties": {"name": SAID}}
OF_CURSOR = {
    ".cursor-plugin/marketplace.json": {
        "type": "object",
        "required": ["name", "plugins"],
        "additionalProperties": False,
        "properties": {
            "name": SAID,
            "owner": WHOM,
            "metadata": {"type": "object", "properties": {"description": {"type": "string"}}},
            "plugins": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["name", "source"],
                    "additionalProperties": False,
                    "properties": {"name": NAMED, "source": SAID, "description": {"type": "string"}},
                },
            },
        },
    },
    ".cursor-plugin/plugin.json": {
        "type": "object",
        "required": ["name"],
        "additionalProperties": False,
        "properties": {
            "name": NAMED,
            **{key: {"type": "string"} for key in ("version", "description", "skills")},
            "author": WHOM,
        },
    },
}


def test_cursor_finds_a_catalogue_and_manifests_of_the_form_that_it_publishes() -> None:
    offered = [Plugin("pdf-tools", Version("1.0.0", "Merges.")), Plugin("a", Version("2.0.0", ""))]
    files = catalogue_files("vskill-acme", offered)
    catalogue = json.loads(files[".cursor-plugin/marketplace.json"])
    Draft7Validator(OF_CURSOR[".cursor-plugin/marketplace.json"]).validate(catalogue)
    for entry, plugin in zip(catalogue["plugins"], offered, strict=True):
        of_plugin = plugin_files(plugin)
        # A source leads from the root of the repository to the folder of the plugin, and both name it alike.
        manifest = json.loads(of_plugin[f"{entry['source'].removeprefix('./')}/.cursor-plugin/plugin.json"])
        Draft7Validator(OF_CURSOR[".cursor-plugin/plugin.json"]).validate(manifest)
        assert (manifest["name"], manifest["version"]) == (entry["name"], plugin.version.version)
        assert manifest["skills"] == "./skills/"


@given(name=texts, offered=st.lists(plugins, max_size=4))
def test_what_is_written_is_json_indented_by_two_in_ascii(name: str, offered: list[Plugin]) -> None:
    files = catalogue_files(name, offered)
    for one in offered:
        files |= plugin_files(one)
    for content in files.values():
        assert content == json.dumps(json.loads(content), indent=2).encode() + b"\n"
