"""The progress of long commands on a terminal; apart from what all commands import, because tqdm takes time to load."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm


@contextmanager
def progress_bar(words: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Show a bar called ``words`` on a terminal during the body, unless it is ``quiet``.

    Yield what moves it: call that with how much is done and how much there is.
    """
    with tqdm(desc=words, unit="", leave=False, file=sys.stderr, disable=True if quiet else None) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield progress
