"""Manifests and catalogues are the same bytes whatever writes them, because commits are made of them."""

from __future__ import annotations

import json
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

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


@given(name=texts, offered=st.lists(plugins, max_size=4))
def test_what_is_written_is_json_indented_by_two_in_ascii(name: str, offered: list[Plugin]) -> None:
    files = catalogue_files(name, offered)
    for one in offered:
        files |= plugin_files(one)
    for content in files.values():
        assert content == json.dumps(json.loads(content), indent=2).encode() + b"\n"
