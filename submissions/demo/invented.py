"""Invent skills as a large registry has them: names, texts, publishers and popularity, the same for the same number."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from marketplace.artifacts.archives import Archive, Member, build_tar_gz, build_zip
from marketplace.records import SkillRecord
from marketplace.skills.capability_names import asked_names
from marketplace.skills.publishers import publisher_of, skill_identity
from submissions.verification.package_contents import PackageFile, hash_files
from vskill.kv.clock import isoformat

# A name that no host can have, so that nothing asks the network for an invented repository.
HOST: Final = "https://git.demo.invalid/"
PACKAGES: Final = 400
_DAYS: Final = 700


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_VERBS: Final = _words(
    "extract convert review summarise translate validate generate clean merge split compare format lint deploy "
    "monitor test refactor document plan schedule search index classify annotate render export import migrate "
    "audit explain"
)
_THINGS: Final = _words(
    "pdf invoices spreadsheets slides emails contracts tickets commits changelogs tests schemas queries "
    "dashboards logs traces images captions subtitles recipes papers citations datasets notebooks notes "
    "meetings calendars budgets forecasts surveys forms pages components styles icons maps routes containers "
    "clusters pipelines secrets dependencies licences translations glossaries diagrams timelines playlists "
    "podcasts transcripts"
)
_FIELDS: Final = _words(
    "finance legal research design frontend backend data devops security writing education health travel "
    "support marketing science music games robotics operations"
)
_OWNERS: Final = _words("amber birch cedar delta ember fjord grove harbor iris jade kestrel lumen maple north onyx")
_KINDS: Final = _words("labs works studio tools team systems research collective")
_COMPATIBILITIES: Final = ("", "Made for Claude Code", "Made for Codex", "Made for Cursor", "Made for Gemini CLI")
_COMPATIBILITY_WEIGHTS: Final = (70, 18, 7, 3, 2)
_LICENSES: Final = ("MIT", "Apache-2.0", "", "BSD-3-Clause", "CC-BY-4.0", "GPL-3.0-only", "MPL-2.0")
_LICENSE_WEIGHTS: Final = (48, 24, 14, 5, 4, 3, 2)
_VERDICTS: Final = ("clear", "notes", "held", "unscanned", "inconclusive", "held_high")
_VERDICT_WEIGHTS: Final = (780, 170, 28, 12, 6, 4)
_CAPABILITIES: Final = (
    ("filesystem_read", 0.44),
    ("shell_execution", 0.42),
    ("network_egress", 0.27),
    ("filesystem_write", 0.22),
    ("delegated_authentication", 0.07),
    ("dynamic_code_execution", 0.06),
    ("install_time_execution", 0.015),
    ("mcp_tools_detected", 0.004),
)
_CHINESE: Final = ("合同审查", "数据清洗", "会议纪要", "论文摘要", "诗词赏析", "代码评审")
_SENTENCES: Final = (
    "Use it when somebody asks to {verb} {thing} for {field}.",
    "Works on {thing} of any size and says what it left out.",
    "Keeps the originals and writes {thing} into a folder of their own.",
    "Follows the conventions of {field} teams, and asks before it changes anything.",
    "Reads {thing}, finds what matters for {field}, and answers with a table.",
    "Knows the common mistakes with {other} and points them out.",
)


@dataclass(frozen=True)
class Package:
    """The files of an invented skill, with their digests and archives; many skills share one."""

    files: tuple[PackageFile, ...]
    members: tuple[Member, ...]
    skill_md: str
    content_hash: str
    zip: Archive
    tar: Archive


@dataclass(frozen=True)
class Invented:
    """An invented skill: its record, how often it is downloaded, and the packages of its versions, oldest first."""

    record: SkillRecord
    downloads: int
    recent: int
    packages: tuple[int, ...]


def package(number: int) -> Package:
    """Return one of the ``PACKAGES`` packages."""
    chance = random.Random(f"package {number}")  # noqa: S311 - nothing secret
    verb, thing, field = chance.choice(_VERBS), chance.choice(_THINGS), chance.choice(_FIELDS)
    steps = "\n".join(f"{step}. {_sentence(chance, verb, thing, field)}" for step in range(1, chance.randint(4, 24)))
    text = (
        f"---\nname: {verb}-{thing}\ndescription: {_sentence(chance, verb, thing, field)}\n---\n\n"
        f"# {verb.capitalize()} {thing}\n\n## Steps\n\n{steps}\n"
    )
    contents = {"SKILL.md": text, "references/notes.md": f"# Notes on {thing}\n\n{steps[: len(steps) // 2]}\n"}
    if number % 2:
        contents["scripts/run.py"] = f'"""Print the {thing}."""\n\nimport sys\n\nprint(len(sys.argv))\n'
    members = tuple(Member(path, contents[path].encode()) for path in sorted(contents))
    files = tuple(
        PackageFile(one.path, len(one.content), hashlib.sha256(one.content).hexdigest(), executable=False)
        for one in members
    )
    return Package(files, members, text, hash_files(files), build_zip(members), build_tar_gz(members))


def invent(number: int, publishers: int, now: datetime) -> Invented:
    """Return the skill with a number; ``publishers`` is how many there are, of which a few have most skills.

    Skills with higher numbers were published later, all of them before ``now``.
    """
    chance = random.Random(number)  # noqa: S311 - nothing secret
    verb, thing, field = chance.choice(_VERBS), chance.choice(_THINGS), chance.choice(_FIELDS)
    owner_number = int(publishers * chance.random() ** 4)
    owner = f"{_OWNERS[owner_number % len(_OWNERS)]}-{_KINDS[owner_number % len(_KINDS)]}-{owner_number}"
    repo_url = f"{HOST}{owner}/{chance.choice(('skills', 'agent-skills', field))}"
    name = f"{chance.choice(_CHINESE)}-{number}" if number % 50 == 0 else f"{verb}-{thing}-{number}"
    path = f"skills/{verb}-{thing}-{number}"
    description = " ".join(_sentence(chance, verb, thing, field) for _ in range(chance.randint(1, 4)))
    published = now - timedelta(days=_DAYS) * (0.5 ** (number / 40_000)) - timedelta(minutes=1)
    updated = published + (now - published) * chance.random() ** 3
    versions = 1 + (chance.random() < 0.14) + (chance.random() < 0.05)
    first = chance.randrange(PACKAGES)
    popularity = int(2 / max(chance.random(), 0.000_05))
    publisher = publisher_of(repo_url)
    return Invented(
        SkillRecord(
            slug=f"{verb}-{thing}-{number}",
            name=name,
            display_name=name,
            description=description,
            publisher=publisher.identity,
            publisher_handle=publisher.handle,
            repo_url=repo_url,
            skill_path=path,
            identity=skill_identity(repo_url, path),
            license=chance.choices(_LICENSES, _LICENSE_WEIGHTS)[0],
            tags=tuple(dict.fromkeys((thing, field, chance.choice(_VERBS))))[: chance.randint(0, 3)],
            latest_version=f"1.{versions - 1}.0",
            verdict=chance.choices(_VERDICTS, _VERDICT_WEIGHTS)[0],
            verdict_summary="Invented: nothing was checked.",
            capabilities=asked_names([name for name, share in _CAPABILITIES if chance.random() < share], None),
            compatibility=chance.choices(_COMPATIBILITIES, _COMPATIBILITY_WEIGHTS)[0],
            published_at=isoformat(published),
            updated_at=isoformat(updated),
        ),
        downloads=popularity,
        recent=popularity // 40,
        packages=tuple((first + 7 * step) % PACKAGES for step in range(versions)),
    )


def _sentence(chance: random.Random, verb: str, thing: str, field: str) -> str:
    return chance.choice(_SENTENCES).format(verb=verb, thing=thing, field=field, other=chance.choice(_THINGS))
