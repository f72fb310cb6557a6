"""Our part of the measurement of search, in a process of its own: publish the public skills and ask every query."""

from __future__ import annotations

import math
import os
import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable
from statistics import fmean
from typing import Final

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "vskill.settings")
    django.setup()

from django.core.management import call_command

from marketplace.skills.answers import search_sync
from tests.bench.query_set import Listed, Query, read_queries, read_skills
from tests.bench.ready import say
from tests.marketplace.pages.page_factory import publish
from vskill.environments import get_environment

MOST: Final = 10
Ask = Callable[[str], list[tuple[str, str]]]
"""What answers a query: repository and name of the best skills, the best first, at most ``MOST``."""


def rate(queries: list[Query], ask: Ask) -> dict[str, dict[str, float]]:
    """Return nDCG@10 and the mean reciprocal rank of the answers, of all and of each kind; each query has one answer.

    With one answer that is wanted, its discounted gain is 1 / log2(1 + rank), and the ideal one is 1.
    """
    ranks: dict[str, list[int]] = defaultdict(list)
    for query in queries:
        found = ask(query.text)[:MOST]
        wanted = (query.repository, query.name)
        rank = found.index(wanted) + 1 if wanted in found else 0
        ranks["all"].append(rank)
        ranks[query.kind].append(rank)
    return {
        kind: {
            "ndcg": fmean(1 / math.log2(1 + rank) if rank else 0.0 for rank in places),
            "mrr": fmean(1 / rank if rank else 0.0 for rank in places),
        }
        for kind, places in ranks.items()
    }


def plain_bm25(skills: list[Listed]) -> Ask:
    """Return plain BM25 over names and descriptions, in which any word of the query may be found."""
    index = sqlite3.connect(":memory:")
    index.execute("CREATE VIRTUAL TABLE documents USING fts5(repository UNINDEXED, name, words)")
    rows = [(one.repository, one.name, " ".join(one.words)) for one in skills]
    index.executemany("INSERT INTO documents VALUES (?, ?, ?)", rows)

    def ask(text: str) -> list[tuple[str, str]]:
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", text))
        found = index.execute(
            "SELECT repository, name FROM documents WHERE documents MATCH ? ORDER BY rank LIMIT ?", (words, MOST)
        )
        return [(str(repository), str(name)) for repository, name in found]

    return ask


def ours(skills: list[Listed]) -> Ask:
    """Publish the skills and return the search of the marketplace."""
    env = get_environment("default")
    for one in skills:
        publish(
            env,
            one.name,
            description=" ".join(one.words),
            repo_url=f"https://github.com/{one.repository}",
            text=f"# {one.name}",
        )

    def ask(text: str) -> list[tuple[str, str]]:
        hits = search_sync(env, text, limit=MOST)
        return [(hit.skill.repo_url.removeprefix("https://github.com/"), hit.skill.name) for hit in hits]

    return ask


def main() -> None:
    """Say how both answer."""
    call_command("migrate", verbosity=0)
    skills, queries = read_skills(), read_queries()
    say({"ours": rate(queries, ours(skills)), "plain": rate(queries, plain_bm25(skills))})


if __name__ == "__main__":
    main()
