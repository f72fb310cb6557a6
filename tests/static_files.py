"""Find the static files once in a process, and not for each client that a test makes.

A server loads its middleware once. A client of Django's tests loads it at its first request, and to find the files anew
took 20 ms of each test that asks for a page.
"""

from __future__ import annotations

from typing import Any, Final

from servestatic.middleware import ServeStaticMiddleware

# By what decides how they are served: the files by their addresses, and the folders that they are in.
_found: Final[dict[tuple[Any, ...], tuple[dict[str, Any], list[tuple[str, str]]]]] = {}


def find_static_files_once() -> None:
    """Let every middleware after the first take what that one has found under the same settings."""
    find = ServeStaticMiddleware.add_files_from_finders

    def take(middleware: ServeStaticMiddleware) -> None:
        key = (middleware.static_prefix, middleware.autorefresh, middleware.max_age, middleware.charset)
        if key not in _found:
            find(middleware)
            _found[key] = dict(middleware.files), list(middleware.directories)
            return
        files, directories = _found[key]
        middleware.files.update(files)
        middleware.directories[:] = directories

    ServeStaticMiddleware.add_files_from_finders = take
