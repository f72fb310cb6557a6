"""Bad input through the form and the API: a clear answer, nothing lost, nothing half-written."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings as configured
from django.test import AsyncClient
from pytest_django import Settings

from marketplace.models import SkillEntry, SkillVersion
from submissions.models import SubmissionTransition
from submissions.states import FINAL_STATES
from tests.end_to_end.big_file import make_repository_with_big_file
from tests.end_to_end.journey import Visitor, address_of, consume, get_json, stored, submit_by_api
from tests.git_factory import git, make_repository, skill_md
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)

GIB = 1024 * 1024 * 1024
GOOD = "skills/hello-skill"
BAD = "skills/other-skill"
Content = bytes | str

LETTERS = "abcdefghi"
YAML_BOMB = "\n".join(
    ["---", "name: other-skill", "description: grows", "a: &a [x, x, x, x, x, x, x, x, x]"]
    + [f"{after}: &{after} [{', '.join([f'*{before}'] * 9)}]" for before, after in pairwise(LETTERS)]
    + ["---", ""]
)


def broken(content: Content, **more: Content) -> dict[str, Content]:
    """Return the files of the bad skill."""
    return {f"{BAD}/SKILL.md": content, **{f"{BAD}/{path}": text for path, text in more.items()}}


async def ends_well(env: WorkerEnv) -> dict[str, str]:
    """Run the consumer, check that nothing is half-written, and return the state of each path."""
    await consume(env)
    after = await stored(env)
    assert after.messages == 0
    assert {state for _, state in after.submissions} <= FINAL_STATES
    walked = await sync_to_async(lambda: set(SubmissionTransition.objects.values_list("submission_id", flat=True)))()
    assert len(walked) == len(after.submissions)
    published = [path for path, state in after.submissions if state == "PUBLISHED"]
    assert await SkillVersion.objects.acount() == await SkillEntry.objects.acount() == len(published)
    assert list((Path(configured.DATA_DIR) / "work").glob("*")) == []
    return after.ends


async def answer_of_form(address: str) -> tuple[int, str]:
    visitor = Visitor()
    await visitor.ask_for(address)
    return visitor.status, visitor.words()


async def answer_of_api(address: str) -> tuple[int, str]:
    status, body = await submit_by_api(repoUrl=address)
    assert {"error", "message"} <= body.keys()
    return status, body["message"]


def in_folder(make: Callable[[Path], Path]) -> Callable[[Path], str]:
    return lambda folder: address_of(make(folder / "skills.git"))


def without_skill(path: Path) -> Path:
    return make_repository(path, {"README.md": "Nothing to see.\n"})


def many_files(path: Path) -> Path:
    return make_repository(path, {f"{GOOD}/SKILL.md": skill_md(), **{f"data/{n}.txt": "x" for n in range(10_000)}})


ADDRESSES = [
    # the address, words of the answer, the status of the API
    pytest.param(lambda _: "how do I get a skill", "not a repository address", 400, id="not a URL"),
    pytest.param(lambda _: "https://", "no valid host name", 400, id="no host"),
    pytest.param(lambda _: "https://github.com", "no repository", 400, id="no repository in it"),
    pytest.param(lambda _: "https://10.1.2.3/o/r", "public internet", 400, id="private host"),
    pytest.param(lambda _: "https://[fd00::1]/o/r", "public internet", 400, id="private IPv6 host"),
    pytest.param(lambda _: "https://169.254.169.254/o/r", "public internet", 400, id="metadata service"),
    pytest.param(lambda _: "https://127.0.0.1:8000/o/r", "public internet", 400, id="loopback host"),
    pytest.param(lambda _: "https://localhost/o/r", "public internet", 400, id="loopback by name"),
    pytest.param(lambda _: "https://0x7f.1/o/r", "public internet", 400, id="loopback in disguise"),
    pytest.param(lambda _: "ssh://git@github.com:2222/o/r.git", "port of ssh", 400, id="ssh"),
    pytest.param(lambda _: "me@github.com:o/r.git", "names a user", 400, id="scp spelling"),
    pytest.param(lambda _: "http://github.com/o/r", "replace http:// by https://", 400, id="http"),
    pytest.param(lambda _: "git://github.com/o/r", "https only", 400, id="git transport"),
    pytest.param(lambda _: "ext::sh -c touch% /tmp/owned", "never run", 400, id="ext"),
    pytest.param(lambda _: "--upload-pack=touch /tmp/owned", "not a repository address", 400, id="an option of git"),
    pytest.param(lambda _: "file:///etc", "folders that the operator allows", 400, id="file outside"),
    pytest.param(lambda f: f"{f.as_uri()}{'/..' * 9}/etc/r", "the operator allows", 400, id="file that climbs"),
    pytest.param(lambda _: "https://u:secret-token@github.com/o/r", "password or token", 400, id="password"),
    pytest.param(lambda _: "https://github.com/" + "o" * 1050, "longer than 1024", 400, id="very long"),
    pytest.param(lambda f: f.as_uri() + "/absent", "no git repository", 422, id="missing repository"),
    pytest.param(in_folder(make_repository), "nothing was committed", 422, id="empty repository"),
    pytest.param(in_folder(without_skill), "no folder holds a SKILL.md", 422, id="no skill"),
]


@pytest.mark.parametrize(("make", "words", "status"), ADDRESSES)
async def test_a_bad_address_is_answered_and_nothing_is_stored(
    env: WorkerEnv, tmp_path: Path, make: Callable[[Path], str], words: str, status: int
) -> None:
    address = make(tmp_path)
    by_api, told_by_api = await answer_of_api(address)
    by_form, told_by_form = await answer_of_form(address)
    assert (by_api, by_form) == (status, 422)
    for told in (told_by_api, told_by_form):
        assert words in told
        assert "secret-token" not in told
    assert await ends_well(env) == {}


async def test_a_repository_that_cannot_be_read_now_may_be_tried_later(env: WorkerEnv, tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "skills.git", {f"{GOOD}/SKILL.md": skill_md()})
    # As if the disk of the host had lost the tree of the newest commit.
    tree = git(repository, "rev-parse", "main^{tree}").decode().strip()
    (repository / "objects" / tree[:2] / tree[2:]).unlink()
    by_api, told_by_api = await answer_of_api(address_of(repository))
    by_form, told_by_form = await answer_of_form(address_of(repository))
    assert (by_api, by_form) == (503, 503)
    assert told_by_api in told_by_form
    assert await ends_well(env) == {}


@pytest.mark.slow
async def test_a_file_of_one_gibibyte_is_refused(env: WorkerEnv, tmp_path: Path, settings: Settings) -> None:
    # The time that git needs is not under test.
    settings.FETCH_SECONDS = 170
    files = {f"{GOOD}/SKILL.md": skill_md().encode()}
    address = address_of(make_repository_with_big_file(tmp_path / "skills.git", files, f"{GOOD}/zeros.bin", GIB))
    status, body = await submit_by_api(repoUrl=address)
    assert status == 202
    assert await ends_well(env) == {GOOD: "TIER1_FAILED"}
    told = await get_json(f"/api/v1/submissions/{body['id']}")
    assert "MiB" in told["reason"]
    assert "smaller repository" in told["reason"]


async def test_a_repository_of_ten_thousand_files_costs_only_what_is_asked_for(env: WorkerEnv, tmp_path: Path) -> None:
    status, body = await submit_by_api(repoUrl=address_of(many_files(tmp_path / "skills.git")))
    assert status == 202
    assert [item["outcome"] for item in body["submissions"]] == ["created"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param(b"", "not JSON", id="nothing"),
        pytest.param(b"{", "not JSON", id="half of it"),
        pytest.param(b"\xff\xfe", "not JSON", id="not UTF-8"),
        pytest.param(b"[" * 30_000, "not JSON", id="nested"),
        pytest.param(b"[]", "not an object", id="a list"),
        pytest.param(b"{}", "'repoUrl' is missing", id="no address"),
        pytest.param(b'{"repoUrl": 7}', "'repoUrl' is not a text", id="a number"),
        pytest.param(b'{"repoUrl": "o/r", "skillPath": ["x"]}', "'skillPath' is not a text", id="a list of paths"),
        pytest.param(json.dumps({"repoUrl": "x" * 70_000}).encode(), "larger than 64 KiB", id="very large"),
    ],
)
async def test_a_bad_body_is_answered(env: WorkerEnv, body: bytes, words: str) -> None:
    response = await AsyncClient().post("/api/v1/submissions", body, content_type="application/json")
    assert response.status_code == (413 if "larger than" in words else 400)
    assert words in response.json()["message"]
    assert "Nothing was submitted" in response.json()["message"]
    assert await ends_well(env) == {}


@dataclass(frozen=True)
class Bad:
    """A skill that cannot be published, and words of the reason."""

    words: str
    files: Mapping[str, Content] = field(default_factory=dict)
    symlinks: Mapping[str, str] = field(default_factory=dict)


# Found when the skills are listed, so the skill cannot be selected.
LISTED = [
    pytest.param(Bad("not a text file: a zero byte", broken(b"\x7fELF\0\0\1\2" * 9)), id="binary"),
    pytest.param(Bad("SKILL.md is empty", broken("")), id="empty"),
    pytest.param(Bad("not UTF-8", broken("---\nname: café\ndescription: x\n---\n".encode("latin-1"))), id="Latin-1"),
    pytest.param(Bad("UTF-16, not UTF-8", broken(skill_md().encode("utf-16"))), id="UTF-16"),
    pytest.param(Bad("no frontmatter", broken("# Other skill\n\nDoes things.\n")), id="no frontmatter"),
    pytest.param(Bad("not closed", broken("---\nname: other-skill\n")), id="frontmatter without end"),
    pytest.param(Bad("anchors or aliases", broken(YAML_BOMB)), id="YAML bomb"),
    pytest.param(Bad("'name' twice", broken("---\nname: a\nname: b\ndescription: c\n---\n")), id="duplicate keys"),
    pytest.param(Bad("no description", broken("---\nname: other-skill\n---\n")), id="no description"),
    pytest.param(Bad("a link", symlinks={f"{BAD}/SKILL.md": "/etc/passwd"}), id="SKILL.md is a link to /etc/passwd"),
    pytest.param(
        Bad("files; 500 are allowed", broken(skill_md("other-skill"), **{f"d/{n}": "x" for n in range(600)})),
        id="600 files",
    ),
]
# Found when the skill is checked, because a list of skills does not know the sizes of files.
CHECKED = [
    pytest.param(
        Bad("10 MiB are allowed", broken(skill_md("other-skill"), **{"big.bin": bytes(11 * 1024 * 1024)})), id="11 MiB"
    ),
]
# Said when the skills are listed, and submitted all the same: the submission is held for a person.
HELD = [
    pytest.param(
        Bad("symbolic link", broken(skill_md("other-skill")), {f"{BAD}/p.txt": "/etc/passwd"}), id="link to /etc/passwd"
    ),
    pytest.param(Bad("symbolic link", broken(skill_md("other-skill")), {f"{BAD}/up": "../.."}), id="link out"),
    pytest.param(Bad("con.txt", broken(skill_md("other-skill"), **{"con.txt": "x"})), id="a name for no system"),
    pytest.param(Bad("was not opened", broken(skill_md("other-skill"), **{"a.zip": b"PK\3\4"})), id="archive"),
]


def beside_a_good_one(folder: Path, bad: Bad) -> str:
    files = {f"{GOOD}/SKILL.md": skill_md(), **bad.files}
    return address_of(make_repository(folder / "skills.git", files, symlinks=bad.symlinks))


@pytest.mark.parametrize("bad", LISTED)
async def test_the_api_takes_the_good_skill_and_names_the_bad_one(env: WorkerEnv, tmp_path: Path, bad: Bad) -> None:
    status, body = await submit_by_api(repoUrl=beside_a_good_one(tmp_path, bad))
    assert status == 202
    by_path = {item["skillPath"]: item for item in body["submissions"]}
    assert {path: item["outcome"] for path, item in by_path.items()} == {GOOD: "created", BAD: "invalid"}
    assert bad.words in by_path[BAD]["reason"]
    assert body["id"] == by_path[GOOD]["id"]
    assert await ends_well(env) == {GOOD: "PUBLISHED"}


@pytest.mark.parametrize("bad", LISTED)
async def test_the_form_shows_the_problem_and_takes_the_good_skill(env: WorkerEnv, tmp_path: Path, bad: Bad) -> None:
    visitor = Visitor()
    assert await visitor.ask_for(beside_a_good_one(tmp_path, bad)) == [GOOD]
    assert visitor.status == 200
    assert bad.words in visitor.words()
    # The checkbox is disabled, but a client can send its value all the same.
    await visitor.pick([GOOD, BAD])
    assert visitor.status == 422
    assert bad.words in visitor.words()
    assert "root:" not in visitor.text
    assert await ends_well(env) == {GOOD: "PUBLISHED"}


@pytest.mark.parametrize("bad", LISTED)
async def test_a_bad_skill_alone_is_refused_by_name(env: WorkerEnv, tmp_path: Path, bad: Bad) -> None:
    repository = make_repository(tmp_path / "skills.git", bad.files, symlinks=bad.symlinks)
    status, body = await submit_by_api(repoUrl=address_of(repository))
    assert (status, body["error"]) == (422, "invalid_skill")
    assert bad.words in body["message"]
    assert "Nothing was submitted" in body["message"]
    assert await ends_well(env) == {}


@pytest.mark.parametrize("bad", CHECKED)
async def test_a_skill_that_fails_its_check_says_what_to_change(env: WorkerEnv, tmp_path: Path, bad: Bad) -> None:
    visitor = Visitor()
    assert await visitor.ask_for(beside_a_good_one(tmp_path, bad)) == [GOOD, BAD]
    await visitor.pick([GOOD, BAD])
    assert visitor.status == 302
    assert await ends_well(env) == {GOOD: "PUBLISHED", BAD: "TIER1_FAILED"}
    items = (await get_json("/api/v1/submissions"))["items"]
    failed = next(item for item in items if item["skillPath"] == BAD)
    told: dict[str, Any] = await get_json(f"/api/v1/submissions/{failed['id']}")
    assert any(bad.words in reason for reason in [told["reason"], *told["decision"]["reasons"]])
    await visitor.open(f"/submissions/{failed['id']}")
    assert bad.words in visitor.words()
    assert "Needs changes" in visitor.words()


@pytest.mark.parametrize("bad", HELD)
async def test_a_skill_that_a_person_must_see_says_why(env: WorkerEnv, tmp_path: Path, bad: Bad) -> None:
    visitor = Visitor()
    assert await visitor.ask_for(beside_a_good_one(tmp_path, bad)) == [GOOD, BAD]
    await visitor.pick([GOOD, BAD])
    assert visitor.status == 302
    assert await ends_well(env) == {GOOD: "PUBLISHED", BAD: "ON_HOLD"}
    items = (await get_json("/api/v1/submissions"))["items"]
    held = next(item for item in items if item["skillPath"] == BAD)
    told: dict[str, Any] = await get_json(f"/api/v1/submissions/{held['id']}")
    assert any(bad.words in reason for reason in told["decision"]["reasons"])
    await visitor.open(f"/submissions/{held['id']}")
    assert bad.words in visitor.words()
    assert "root:" not in visitor.text
    await visitor.open("/skills/other-skill")
    assert visitor.status == 404


HONEST = [
    pytest.param({f"{BAD}/SKILL.md": b"\xef\xbb\xbf" + skill_md("other-skill").encode()}, id="byte-order mark"),
    pytest.param({f"{BAD}/SKILL.md": skill_md("other-skill").replace("\n", "\r\n")}, id="CRLF"),
    pytest.param({"技能/诗词赏析/SKILL.md": skill_md("诗词赏析", "讲解一首诗。")}, id="Chinese name"),
    pytest.param({f"{BAD}/SKILL.md": skill_md("other-skill"), f"{BAD}/说明.md": "你好"}, id="Chinese file name"),
    pytest.param({"more/hello-skill/SKILL.md": skill_md() + "And goodbye.\n"}, id="a second skill of the same name"),
]


@pytest.mark.parametrize("files", HONEST)
async def test_odd_but_honest_skills_are_published(
    env: WorkerEnv, tmp_path: Path, files: Mapping[str, Content]
) -> None:
    repository = make_repository(tmp_path / "skills.git", {f"{GOOD}/SKILL.md": skill_md(), **files})
    status, body = await submit_by_api(repoUrl=address_of(repository))
    assert status == 202
    assert set((await ends_well(env)).values()) == {"PUBLISHED"}
    slugs = set()
    for item in body["submissions"]:
        ended = await get_json(f"/api/v1/submissions/{item['id']}")
        slugs.add(ended["slug"])
        visitor = Visitor()
        await visitor.open(f"/skills/{ended['slug']}")
        assert visitor.status == 200
        assert item["skillName"] in visitor.words()
    assert len(slugs) == 2


async def test_a_list_of_skills_that_was_not_made_here_submits_nothing(env: WorkerEnv, tmp_path: Path) -> None:
    visitor = Visitor()
    await visitor.ask_for(beside_a_good_one(tmp_path, Bad("")))
    visitor.text = visitor.text.replace(visitor.field("listing"), "forged:listing:here")
    await visitor.pick([GOOD])
    assert visitor.status == 400
    assert "was not made here" in visitor.words()
    assert await ends_well(env) == {}


async def test_picking_nothing_and_what_is_not_there_submits_nothing(env: WorkerEnv, tmp_path: Path) -> None:
    for paths in ([], ["skills/of-somebody-else", "../../etc"]):
        visitor = Visitor()
        (tmp_path / str(len(paths))).mkdir()
        await visitor.ask_for(beside_a_good_one(tmp_path / str(len(paths)), Bad("")))
        await visitor.pick(paths)
        assert visitor.status == 400
        assert "Pick at least one skill" in visitor.words()
    assert await ends_well(env) == {}
