"""Addresses of files at a commit, in the form of each host."""

from __future__ import annotations

import pytest

from marketplace.pages.source_links import source_href


@pytest.mark.parametrize(
    ("repository", "path", "address"),
    [
        ("https://github.com/a/b", "docs/a b.md", "https://github.com/a/b/blob/abc/docs/a%20b.md"),
        ("https://github.com/a/b", "docs/", "https://github.com/a/b/tree/abc/docs"),
        ("https://github.com/a/b", "", "https://github.com/a/b/tree/abc"),
        ("https://github.com/a/b", "/", "https://github.com/a/b/tree/abc"),
        ("https://gitlab.com/a/g/b", "x.md", "https://gitlab.com/a/g/b/-/blob/abc/x.md"),
        ("https://gitlab.example.org/a/b", "x/", "https://gitlab.example.org/a/b/-/tree/abc/x"),
        ("https://codeberg.org/a/b", "x.md", "https://codeberg.org/a/b/src/commit/abc/x.md"),
        ("https://gitea.example.org:3000/a/b", "x.md", "https://gitea.example.org:3000/a/b/src/commit/abc/x.md"),
        ("https://bitbucket.org/a/b", "x/", "https://bitbucket.org/a/b/src/abc/x"),
        ("https://git.sr.ht/~a/b", "x.md", "https://git.sr.ht/~a/b/tree/abc/item/x.md"),
        ("https://github.com/a/b", 'a?b#c"d', "https://github.com/a/b/blob/abc/a%3Fb%23c%22d"),
        ("https://git.example.org/a/b", "x.md", ""),
        ("https://notgitlab.example.org/a/b", "x.md", ""),
        ("file:///srv/b", "x.md", ""),
    ],
)
def test_each_host_has_its_form(repository: str, path: str, address: str) -> None:
    assert source_href(repository, "abc", path) == address


def test_without_a_commit_there_is_no_address() -> None:
    assert source_href("https://github.com/a/b", "", "x.md") == ""
