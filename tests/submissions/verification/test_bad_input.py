"""Bad input, one row each: what is submitted, and the sentence that answers it.

Every row takes the same path as a submission: the address is normalised, the repository fetched, its skills listed, and
one of them read completely.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from submissions.source.errors import (
    InvalidRepositoryURL,
    RepositoryEmpty,
    RepositoryNotFound,
    RepositoryTooLarge,
    SourceError,
)
from submissions.source.git import fetch_snapshot
from submissions.source.git_process import FetchLimits
from submissions.source.urls import SourcePolicy, normalise_repository_url
from submissions.verification.errors import InvalidPackage, TooManySkills
from submissions.verification.findings import Severity
from submissions.verification.found_skills import FoundSkill, find_skills
from submissions.verification.packages import SkillPackage, read_package
from submissions.verification.structure import PackageLimits
from tests.git_factory import commit_raw_tree, make_repository, skill_md

BOMB = (
    "---\nname: bomb\ndescription: x\na: &a [x,x,x,x,x,x,x,x,x]\n"
    + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)},*{chr(97 + n)},*{chr(97 + n)}]\n" for n in range(20))
    + "---\n"
)
GIB = 1024 * 1024 * 1024

Files = dict[str, bytes | str]


def one_skill(content: bytes | str, **more: bytes | str) -> Files:
    return {"skills/hello-skill/SKILL.md": content, **more}


@dataclass
class Outcome:
    """How far a submission got."""

    skills: list[FoundSkill] = field(default_factory=list)
    package: SkillPackage | None = None
    error: SourceError | None = None

    @property
    def answer(self) -> str:
        """Return all the text that the submitter would see."""
        words = [str(self.error or "")]
        if isinstance(self.error, InvalidPackage):
            words += [f"{f.title} {f.file}:{f.line} {f.advice}" for f in self.error.findings]
        words += [problem for skill in self.skills for problem in skill.problems]
        return "\n".join(words)


async def submit(
    text: str, tmp_path: Path, *, path: str = "skills/hello-skill", limits: FetchLimits | None = None
) -> Outcome:
    """Take the same path as a submission, as far as it goes."""
    outcome = Outcome()
    policy = SourcePolicy(file_roots=(tmp_path / "allowed",))
    try:
        repository = normalise_repository_url(text, policy)
        snapshot = await fetch_snapshot(
            repository, directory=folder(tmp_path / "fetched"), policy=policy, limits=limits
        )
        outcome.skills = await find_skills(snapshot)
        outcome.package = await read_package(snapshot, path, destination=folder(tmp_path / "package"))
    except SourceError as error:
        outcome.error = error
    return outcome


def folder(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


def repository_of(
    tmp_path: Path,
    files: Files | None = None,
    symlinks: dict[str, str] | None = None,
    submodules: dict[str, str] | None = None,
) -> str:
    path = folder(tmp_path / "allowed") / "r.git"
    return f"file://{make_repository(path, files, symlinks=symlinks, submodules=submodules)}"


def names_in(path: Path) -> list[str]:
    return [child.name for child in path.iterdir()]


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        pytest.param("not a url", InvalidRepositoryURL, "not a repository address", id="not a URL"),
        pytest.param("https://192.168.0.1/a/b", InvalidRepositoryURL, "private", id="private host"),
        pytest.param("https://2130706433/a/b", InvalidRepositoryURL, "loopback", id="loopback host in decimal"),
        pytest.param("https://localhost:8000/a/b", InvalidRepositoryURL, "private network", id="loopback host by name"),
        pytest.param("ssh://me@github.com/a/b", InvalidRepositoryURL, "names a user", id="a user of ssh"),
        pytest.param("ext::sh -c id", InvalidRepositoryURL, "never run", id="ext transport"),
        pytest.param("file:///etc", InvalidRepositoryURL, "operator allows", id="file transport outside the folders"),
        pytest.param("file://{allowed}/absent", RepositoryNotFound, "no git repository", id="missing repository"),
    ],
)
async def test_bad_addresses(tmp_path: Path, text: str, error: type[SourceError], words: str) -> None:
    folder(tmp_path / "allowed")
    outcome = await submit(text.format(allowed=tmp_path / "allowed"), tmp_path)
    assert type(outcome.error) is error
    assert words in str(outcome.error)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        pytest.param({"README.md": "x"}, "There is no skill in skills/hello-skill", id="no skills"),
        pytest.param(one_skill(b"\x7fELF\0\1\2" * 9), "not a text file: a zero byte at offset 4", id="binary"),
        pytest.param(one_skill(b""), "SKILL.md is empty", id="empty"),
        pytest.param(one_skill(b" \n\r\n\t"), "SKILL.md is empty", id="blank"),
        pytest.param(
            one_skill(skill_md("hello-skill", "caf\xe9").encode("latin-1")),
            "not UTF-8: byte 0xe9 at offset 38 SKILL.md:3",
            id="Latin-1",
        ),
        pytest.param(one_skill(skill_md().encode("utf-16")), "UTF-16, not UTF-8", id="UTF-16"),
        pytest.param(one_skill("# Hello\n"), "SKILL.md has no frontmatter", id="no frontmatter"),
        pytest.param(one_skill("\n" + skill_md()), "SKILL.md has no frontmatter", id="a line before the frontmatter"),
        pytest.param(one_skill("---\nname: hello-skill\n"), "not closed", id="frontmatter without end"),
        pytest.param(one_skill("---\n---\n"), "not a list of `key: value` lines", id="empty frontmatter"),
        pytest.param(one_skill("---\n- name\n---\n"), "not a list of `key: value` lines", id="frontmatter is a list"),
        pytest.param(one_skill("---\nname: [a\n---\n"), "not valid YAML", id="broken YAML"),
        pytest.param(one_skill("---\nname: a\ndescription: b\n\tc: {d\n---\n"), "not valid YAML", id="tab and bracket"),
        pytest.param(one_skill(BOMB), "anchors or aliases SKILL.md:4", id="YAML bomb"),
        pytest.param(one_skill("---\na: " + "[" * 5000 + "]" * 5000 + "\n---\n"), "too deeply", id="nested YAML"),
        pytest.param(one_skill("---\na: [" + "1," * 5000 + "]\n---\n"), "too many values", id="endless YAML list"),
        pytest.param(one_skill("---\na: !!python/object/apply:os.system [id]\n---\n"), "YAML tags", id="YAML tag"),
        pytest.param(one_skill("---\n? [a]\n: b\n---\n"), "not plain text", id="YAML key that is a list"),
        pytest.param(one_skill("---\n%YAML 1.2\nname: a\n---\n"), "YAML", id="YAML directive"),
        pytest.param(
            one_skill("---\nname: a\ndescription: b\nname: c\n---\n"), "'name' twice SKILL.md:4", id="duplicate keys"
        ),
        pytest.param(one_skill("---\nname: a\nx: " + "y" * 20_000 + "\n---\n"), "than 16 KiB", id="huge frontmatter"),
        pytest.param(one_skill(skill_md() + "x" * 600_000), "SKILL.md is larger than 512 KiB", id="huge SKILL.md"),
        pytest.param(one_skill("---\nname: [a]\ndescription: x\n---\n"), "name is not a text", id="name is a list"),
        pytest.param(one_skill("---\nname: hello-skill\n---\n"), "no description", id="no description"),
        pytest.param(one_skill("---\nname: a\ndescription: ~\n---\n"), "no description", id="empty description"),
        pytest.param(
            one_skill(skill_md(), **{f"skills/hello-skill/big{n}.txt": "x" * 4_000_000 for n in range(3)}),
            "10 MiB are allowed",
            id="more than 10 MiB",
        ),
        pytest.param(
            one_skill(skill_md(), **{f"skills/hello-skill/f{n}": "x" for n in range(500)}),
            "The skill has 501 files; 500 are allowed",
            id="501 files",
        ),
    ],
)
async def test_bad_skills_get_an_answer_and_are_still_listed(tmp_path: Path, files: Files, words: str) -> None:
    outcome = await submit(repository_of(tmp_path, files), tmp_path)
    assert isinstance(outcome.error, InvalidPackage)
    assert words in outcome.answer
    assert [skill.path for skill in outcome.skills] == (["skills/hello-skill"] if "README.md" not in files else [])
    assert all(finding.advice for finding in outcome.error.findings)


@pytest.mark.parametrize(
    ("files", "name"),
    [
        pytest.param(one_skill(b"\xef\xbb\xbf" + skill_md().encode()), "hello-skill", id="byte-order mark"),
        pytest.param(one_skill(skill_md().replace("\n", "\r\n")), "hello-skill", id="CRLF"),
        pytest.param(one_skill(skill_md().replace("\n", "\r")), "hello-skill", id="CR"),
        pytest.param(
            one_skill(skill_md("\u4f60\u597d", "\u4f1a\u8bf4\u4f60\u597d")), "\u4f60\u597d", id="Chinese name"
        ),
        pytest.param(
            one_skill(skill_md(), **{"skills/hello-skill/\u8aaa\u660e.md": "x"}), "hello-skill", id="Chinese file name"
        ),
        pytest.param({"skills/hello-skill/skill.md": skill_md()}, "hello-skill", id="skill.md in small letters"),
        pytest.param(one_skill(skill_md(), **{".gitattributes": "* filter=x"}), "hello-skill", id="git attributes"),
        pytest.param(one_skill(skill_md("Hello Skill: for me")), "Hello Skill: for me", id="name with capitals"),
        pytest.param(one_skill("---  \nname: 'true'\ndescription: 1.10\n--- \n"), "true", id="scalars are texts"),
    ],
)
async def test_odd_but_honest_skills_are_read(tmp_path: Path, files: Files, name: str) -> None:
    outcome = await submit(repository_of(tmp_path, files), tmp_path)
    assert outcome.error is None
    assert outcome.package is not None
    assert outcome.package.name == name
    assert "\r" not in outcome.package.skill_md
    assert not outcome.package.skill_md.startswith("\ufeff")
    assert [(skill.name, skill.problems) for skill in outcome.skills] == [(name, ())]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param("con.txt", "reserved device", id="con.txt"),
        pytest.param("a\\b", "not allowed on every", id="backslash"),
        pytest.param("a\nb", "such as U+000A", id="line feed in a name"),
        pytest.param("a\u202eb", "such as U+202E", id="bidi in a name"),
        pytest.param("a.", "space or a dot", id="trailing dot"),
        pytest.param("\udcff", "not UTF-8", id="name not UTF-8"),
        pytest.param(f"{'d/' * 20}f", "deep", id="deep folders"),
    ],
)
async def test_a_bad_name_holds_its_own_skill_and_no_other(tmp_path: Path, name: str, words: str) -> None:
    files = one_skill(skill_md(), **{f"skills/hello-skill/{name}": "x", "SKILL.md": skill_md("root-skill")})
    outcome = await submit(repository_of(tmp_path, files), tmp_path)
    assert outcome.package is not None
    assert [file.path for file in outcome.package.files] == ["SKILL.md"]
    [finding] = outcome.package.findings
    assert (finding.rule_id, finding.severity) == ("structure.name", Severity.HIGH)
    assert words in finding.title
    notes = {skill.name: (skill.problems, len(skill.notes)) for skill in outcome.skills}
    assert notes == {"root-skill": ((), 2), "hello-skill": ((), 1)}


@pytest.mark.parametrize(
    ("symlinks", "submodules", "rule", "severity"),
    [
        pytest.param({"p": "/etc/passwd"}, {}, "structure.link", Severity.HIGH, id="link to a secret"),
        pytest.param({"p": "SKILL.md"}, {}, "structure.link", Severity.LOW, id="link to a neighbour"),
        pytest.param({}, {"p": "1" * 40}, "structure.submodule", Severity.MEDIUM, id="submodule"),
    ],
)
async def test_links_and_submodules_are_never_followed_on_a_disk(
    tmp_path: Path, symlinks: dict[str, str], submodules: dict[str, str], rule: str, severity: Severity
) -> None:
    below = "skills/hello-skill"
    address = repository_of(
        tmp_path,
        one_skill(skill_md("hello-skill")),
        {f"{below}/{name}": target for name, target in symlinks.items()},
        {f"{below}/{name}": commit for name, commit in submodules.items()},
    )
    outcome = await submit(address, tmp_path)
    assert outcome.package is not None
    assert [(one.rule_id, one.severity, one.file) for one in outcome.package.findings] == [(rule, severity, "p")]
    contents = {name: (tmp_path / "package" / name).read_text() for name in names_in(tmp_path / "package")}
    own = {"p": skill_md("hello-skill")} if severity is Severity.LOW else {}
    assert contents == {"SKILL.md": skill_md("hello-skill"), **own}
    assert not (tmp_path / "package" / "p").is_symlink()


async def test_a_skill_md_that_is_a_link_is_listed_with_its_problem(tmp_path: Path) -> None:
    links = {"skills/hello-skill/SKILL.md": "/etc/passwd"}
    outcome = await submit(repository_of(tmp_path, symlinks=links), tmp_path)
    assert isinstance(outcome.error, InvalidPackage)
    [skill] = outcome.skills
    said = "SKILL.md is a link, and it leads out of the folder of the skill"
    assert (skill.name, skill.problems) == ("hello-skill", (said,))


@pytest.mark.parametrize("name", [b"..", b"../../escaped", b".git", b"a/../../escaped"])
async def test_names_that_git_itself_refuses_to_write_are_left_out(tmp_path: Path, name: bytes) -> None:
    repository = make_repository(folder(tmp_path / "allowed") / "r.git")
    commit_raw_tree(repository, {b"SKILL.md": skill_md().encode(), name: b"x"})
    outcome = await submit(f"file://{repository}", tmp_path, path="")
    assert outcome.package is not None
    assert [finding.rule_id for finding in outcome.package.findings] == ["structure.name"]
    assert names_in(tmp_path / "package") == ["SKILL.md"]
    assert "escaped" not in names_in(tmp_path)


async def test_every_problem_is_reported_at_once(tmp_path: Path) -> None:
    big = {f"skills/hello-skill/big{n}.txt": "x" * 4_000_000 for n in range(3)}
    files = one_skill("---\nname: Bad Name\n---\n", **{**big, "skills/hello-skill/nul": "x"})
    links = {"skills/hello-skill/p": "/etc/passwd"}
    outcome = await submit(repository_of(tmp_path, files, symlinks=links), tmp_path)
    assert isinstance(outcome.error, InvalidPackage)
    assert {finding.rule_id for finding in outcome.error.findings} == {
        *("format.description", "format.too-large", "structure.name", "structure.link"),
        *("lint.name", "lint.name-folder"),
    }
    [skill] = outcome.skills
    assert (len(skill.problems), len(skill.notes)) == (2, 4)


async def test_an_empty_repository(tmp_path: Path) -> None:
    assert isinstance((await submit(repository_of(tmp_path), tmp_path)).error, RepositoryEmpty)


async def test_a_repository_of_ten_thousand_files(tmp_path: Path) -> None:
    outcome = await submit(repository_of(tmp_path, one_skill("x", **{f"f{n}": "x" for n in range(9_999)})), tmp_path)
    assert isinstance(outcome.error, RepositoryTooLarge)
    assert "more than 5,000 files" in str(outcome.error)


async def test_a_repository_of_too_many_skills(tmp_path: Path) -> None:
    repository = make_repository(folder(tmp_path / "allowed") / "r.git", {f"s{n}/SKILL.md": "x" for n in range(4)})
    policy = SourcePolicy(file_roots=(tmp_path,))
    url = normalise_repository_url(f"file://{repository}", policy)
    snapshot = await fetch_snapshot(url, directory=folder(tmp_path / "fetched"), policy=policy)
    assert len(await find_skills(snapshot, PackageLimits(skills=4))) == 4
    with pytest.raises(TooManySkills, match="4 skills; 3 can be listed"):
        await find_skills(snapshot, PackageLimits(skills=3))


async def test_two_skills_of_one_name_are_two_skills(tmp_path: Path) -> None:
    files: Files = {"a/hello-skill/SKILL.md": skill_md(), "b/hello-skill/SKILL.md": skill_md("hello-skill", "Second.")}
    outcome = await submit(repository_of(tmp_path, files), tmp_path, path="b/hello-skill")
    assert [(skill.path, skill.name) for skill in outcome.skills] == [
        ("a/hello-skill", "hello-skill"),
        ("b/hello-skill", "hello-skill"),
    ]
    assert outcome.package is not None
    assert outcome.package.description == "Second."


async def test_a_file_of_one_gibibyte_scaled_down_with_its_limit(tmp_path: Path) -> None:
    """Test 32 MiB against 6.25 MiB instead of 1 GiB against 200 MiB, which takes git 20 s to make and send."""
    scale = 32
    files = one_skill(skill_md(), **{"skills/hello-skill/zeros": bytes(GIB // scale)})
    limits = FetchLimits(tree_bytes=FetchLimits().tree_bytes // scale)
    outcome = await submit(repository_of(tmp_path, files), tmp_path, limits=limits)
    assert isinstance(outcome.error, RepositoryTooLarge)
    assert "MiB together" in str(outcome.error)
