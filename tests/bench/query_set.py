"""Make the set of queries by which search is judged, of local clones: ``python -m tests.bench.query_set CLONES``.

Of each public skill it keeps the name and the words of the description, each once and in alphabetical order: facts to
search among, and no sentence of anybody. Each query is made of one skill in a way in which people search, by a fixed
seed, and that skill is the answer that is wanted. The files are committed, so that everybody measures the same.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

HERE: Final = Path(__file__).parent / "data"
SKILLS: Final = HERE / "public_skills.tsv"
QUERIES: Final = HERE / "search_queries.tsv"
# Repositories whose licence permits it (docs/dependencies.md), by the folder of their clone.
REPOSITORIES: Final = (
    "wshobson/agents",
    "obra/superpowers",
    "google/skills",
    "getsentry/skills",
    "expo/skills",
    "github/awesome-copilot",
)
_SEED: Final = 13
_MOST_WORDS: Final = 40
_WORD: Final = re.compile(r"[a-z][a-z0-9]+")
_COMMON_TEXT: Final = """
    a an and any are as at be by can do for from has have how if in into is it its more not of on or other over so that
    the their them then these this to up use used user users using want wants was when where which while who will with
    without you your skill skills agent asks ask needs need also all such like via about before after
"""
_COMMON: Final = frozenset(_COMMON_TEXT.split())


@dataclass(frozen=True)
class Listed:
    """A public skill: the repository, its name, and the words of its description."""

    repository: str
    name: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Query:
    """What somebody types, the way in which it was made, and the repository and name of the skill that is wanted."""

    kind: str
    text: str
    repository: str
    name: str


def read_skills() -> list[Listed]:
    """Return the public skills of the committed file."""
    rows = (line.split("\t") for line in SKILLS.read_text(encoding="utf-8").splitlines())
    return [Listed(repository, name, tuple(words.split())) for repository, name, words in rows]


def read_queries() -> list[Query]:
    """Return the queries of the committed file."""
    return [Query(*line.split("\t")) for line in QUERIES.read_text(encoding="utf-8").splitlines()]


def _git(clone: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(clone), *arguments], check=True, capture_output=True, encoding="utf-8", errors="replace"
    ).stdout


def collect(clones: Path) -> list[Listed]:
    """Return the skills of the clones below ``clones``, in folders such as ``obra+superpowers``; one of each name."""
    found: dict[str, Listed] = {}
    for repository in REPOSITORIES:
        clone = next(path for path in (clones / repository.replace("/", "+")).iterdir() if path.is_dir())
        for path in _git(clone, "ls-tree", "-r", "--name-only", "HEAD").splitlines():
            if path.rpartition("/")[2] != "SKILL.md":
                continue
            front = _git(clone, "show", f"HEAD:{path}").removeprefix("\ufeff").split("\n---")[0].removeprefix("---")
            try:
                values = yaml.safe_load(front)
            except yaml.YAMLError:
                continue
            if not isinstance(values, dict):
                continue
            name, description = str(values.get("name", "")).lower(), str(values.get("description", "")).lower()
            words = dict.fromkeys(word for word in _WORD.findall(description) if word not in _COMMON)
            if re.fullmatch(r"[a-z0-9-]{3,64}", name) and len(words) >= 5:
                found.setdefault(name, Listed(repository, name, tuple(sorted(list(words)[:_MOST_WORDS]))))
    return sorted(found.values(), key=lambda one: (one.repository, one.name))


def make(skills: list[Listed], seed: int = _SEED) -> list[Query]:
    """Return 200 queries about different skills, of six kinds."""
    rng = random.Random(seed)
    rare = Counter(word for one in skills for word in one.words)
    waiting = rng.sample(skills, len(skills))
    made: list[Query] = []

    def add(kind: str, count: int, text_of: Callable[[Listed], str]) -> None:
        taken = 0
        while taken < count and waiting:
            one = waiting.pop()
            text = text_of(one)
            if text:
                made.append(Query(kind, text, one.repository, one.name))
                taken += 1

    def parts(one: Listed) -> list[str]:
        return [part for part in one.name.split("-") if len(part) > 2]

    def purpose(one: Listed) -> list[str]:
        words = [word for word in one.words if word not in one.name and len(word) > 3]
        # Neither what everybody says nor what nobody else does.
        return sorted((word for word in words if rare[word] > 1), key=lambda word: (rare[word], word))

    def typo(one: Listed) -> str:
        words = one.name.split("-")
        longest = max(range(len(words)), key=lambda place: len(words[place]))
        word = words[longest]
        if len(word) < 6:
            return ""
        place = rng.randrange(2, len(word) - 1)
        swapped = word[: place - 1] + word[place] + word[place - 1] + word[place + 1 :]
        words[longest] = rng.choice((swapped, word[:place] + word[place + 1 :]))
        return " ".join(words) if words[longest] != word else ""

    def other_number(word: str) -> str:
        return word[:-1] if word.endswith("s") else f"{word}s"

    def two_of_the_name(one: Listed) -> str:
        return " ".join(reversed(rng.sample(parts(one), 2))) if len(parts(one)) > 2 else ""

    def name_and_purpose(one: Listed) -> str:
        if not parts(one) or not purpose(one):
            return ""
        return f"{other_number(parts(one)[-1])} {other_number(purpose(one)[0])}"

    add("the name", 40, lambda one: one.name.replace("-", " "))
    add("words of the name", 30, two_of_the_name)
    add("the beginning of the name", 30, lambda one: one.name.replace("-", " ")[:-3] if len(one.name) > 9 else "")
    add("a slip in the name", 30, typo)
    add("three words of the purpose", 40, lambda one: " ".join(purpose(one)[:3]) if len(purpose(one)) > 2 else "")
    add("a name's word and the purpose, in another number", 30, name_and_purpose)
    return made


def main() -> None:
    """Write both files from the clones in the folder that is named."""
    skills = collect(Path(sys.argv[1]))
    HERE.mkdir(exist_ok=True)
    SKILLS.write_text("".join(f"{one.repository}\t{one.name}\t{' '.join(one.words)}\n" for one in skills))
    queries = make(skills)
    QUERIES.write_text("".join(f"{one.kind}\t{one.text}\t{one.repository}\t{one.name}\n" for one in queries))
    print(f"{len(skills)} skills, {len(queries)} queries")


if __name__ == "__main__":
    main()
