"""A followed repository: its new commits are submitted, each once; what is taken back is told and changes nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.test import Client

from marketplace.catalog import quarantine_skill
from marketplace.following import Followed, FollowState, follow_key
from marketplace.models import HistoryEvent, SkillVersion
from marketplace.skills.blocklist import BlockKind, add_block
from submissions.following.changes import in_order, tags_seen
from submissions.following.store import NotFollowed, unfollow
from submissions.jobs.records import SLICE
from submissions.messages import SUBMIT_JOB
from submissions.models import QueueMessage, SubmissionEntry
from submissions.states import State
from tests.git_factory import commit, git, make_repository, skill_md
from tests.submissions.following.followed import again, begin, kept, poll, submissions_of, work_off
from tests.submissions.front_door import EVIL, skills
from vskill.environments import WorkerEnv

NOW = datetime(2026, 6, 1, tzinfo=UTC)
pytestmark = pytest.mark.django_db(transaction=True)


def files(said: str, *names: str) -> dict[str, str]:
    return {f"skills/{name}/SKILL.md": skill_md(name, f"Says {said} as {name}.") for name in names or ("one",)}


def tag(path: Path, name: str, said: str) -> str:
    sha = commit(path, files(said))
    git(path, "tag", "--force", name, sha)
    return sha


def test_new_commits_of_a_branch_are_submitted_once_and_what_did_not_change_is_not(
    env: WorkerEnv, tmp_path: Path
) -> None:
    path = make_repository(tmp_path / "followed.git", files("a", "one", "two"))
    url = begin(env, f"file://{path}")
    first = poll(env)
    assert (first.due, first.looked, first.submitted, first.failed) == (1, 1, 2, 0)
    assert poll(env).due == 0
    assert again(env, url).submitted == 0

    # A newer commit waits while the skill is in the queue, and nobody is asked about it again before it is due.
    newer = commit(path, {**files("b", "one"), **files("a", "two"), "README.md": "changed"})
    assert (again(env, url).submitted, kept(env, url).left) == (0, {"HEAD": newer})
    assert kept(env, url).commit_sha != newer
    work_off(env)
    assert again(env, url).submitted == 1
    work_off(env)
    assert [(name, state) for name, state, _ in submissions_of(env)] == [
        ("one", State.PUBLISHED),
        ("two", State.PUBLISHED),
        ("one", State.PUBLISHED),
    ]
    assert submissions_of(env)[-1][2] == newer
    known = kept(env, url)
    assert (known.state, known.commit_sha, known.left, known.waits) == (FollowState.FOLLOWING, newer, {}, ())
    assert SkillVersion.objects.filter(skill__name="one").count() == 2

    # What was refused is not submitted again with each commit that leaves it alone; when it is changed, it is.
    commit(path, {**files("b", "one"), "skills/bad/SKILL.md": EVIL.replace("key-helper", "bad")})
    assert again(env, url).submitted == 1
    SubmissionEntry.objects.get(skill_name="bad")
    work_off(env)
    held = SubmissionEntry.objects.get(skill_name="bad")
    assert held.state == State.ON_HOLD
    commit(path, {**files("b", "one"), "skills/bad/SKILL.md": EVIL.replace("key-helper", "bad"), "x": "y"})
    assert (again(env, url).submitted, kept(env, url).left) == (0, {})


def test_a_force_push_and_a_deleted_branch_are_told_and_what_is_published_stays(
    env: WorkerEnv, client: Client, tmp_path: Path
) -> None:
    path = make_repository(tmp_path / "followed.git", files("a"), branch="stable")
    git(path, "symbolic-ref", "HEAD", "refs/heads/stable")
    url = begin(env, f"file://{path}", branch="refs/heads/stable")
    poll(env)
    work_off(env)
    old = kept(env, url).tips["refs/heads/stable"]
    ordinary = commit(path, files("b"), branch="stable")
    again(env, url)
    work_off(env)
    assert (kept(env, url).state, kept(env, url).told) == (FollowState.FOLLOWING, ())
    page = client.get("/skills/one").content.decode()
    for words in ("followed since", "last seen", "Submitted last:", ordinary[:12]):
        assert words in page

    tree = git(path, "rev-parse", f"{old}^{{tree}}").decode().strip()
    forced = git(path, "commit-tree", tree, "-m", "Another history").decode().strip()
    git(path, "update-ref", "refs/heads/stable", forced)
    again(env, url)
    again(env, url)
    known = kept(env, url)
    assert known.state is FollowState.REWRITTEN
    assert (ordinary[:12] in known.reason, forced[:12] in known.reason, len(known.told)) == (True, True, 1)
    # The content of the first commit is there again, which is not that of the newest submission.
    work_off(env)
    assert [sha for _, _, sha in submissions_of(env)] == [old, ordinary, forced]
    assert SkillVersion.objects.count() == 2

    git(path, "symbolic-ref", "HEAD", "refs/heads/other")
    git(path, "update-ref", "-d", "refs/heads/stable")
    again(env, url)
    again(env, url)
    gone = kept(env, url)
    assert (gone.state, len(gone.told)) == (FollowState.DELETED, 2)
    page = client.get("/skills/one").content.decode()
    for words in ("Deleted at its source", "branch stable", "is not there any more", "was rewritten (a force-push)"):
        assert words in page
    assert client.get("/skills/one").status_code == 200
    events = HistoryEvent.objects.filter(subject=follow_key(url)).order_by("id")
    assert [one.action for one in events] == ["followed", "rewritten", "deleted"]

    path.rename(tmp_path / "away.git")
    report = again(env, url)
    lost = kept(env, url)
    assert (report.failed, lost.state, lost.failures) == (1, FollowState.DELETED, 1)
    assert "no such repository" in lost.reason
    (tmp_path / "away.git").rename(path)
    git(path, "update-ref", "refs/heads/stable", commit(path, files("c"), branch="stable"))
    assert again(env, url).submitted == 1
    # It is there again, with a history of its own.
    assert (kept(env, url).state, kept(env, url).failures) == (FollowState.REWRITTEN, 0)


def test_tags_by_a_pattern_are_submitted_in_the_order_of_their_versions(
    env: WorkerEnv, client: Client, tmp_path: Path
) -> None:
    path = make_repository(tmp_path / "followed.git", files("before"))
    for number, name in enumerate(("v1.2", "v1.10", "nightly")):
        tag(path, name, f"old {number}")
    url = begin(env, f"file://{path}", tags="v*")
    # Of the tags that are there at the beginning, the newest.
    assert poll(env).submitted == 1
    assert kept(env, url).commit_ref == "refs/tags/v1.10"
    work_off(env)

    shas = {name: tag(path, name, name) for name in ("v2.0", "v1.11", "nightly")}
    # Each becomes a version of its own: the second waits until the first is through.
    again(env, url)
    assert (kept(env, url).commit_sha, list(kept(env, url).left)) == (shas["v1.11"], ["refs/tags/v2.0"])
    work_off(env)
    assert again(env, url).submitted == 1
    work_off(env)
    assert [sha for _, state, sha in submissions_of(env)[1:] if state == State.PUBLISHED] == [
        shas["v1.11"],
        shas["v2.0"],
    ]

    moved = tag(path, "v2.0", "moved")
    git(path, "tag", "--delete", "v1.2")
    again(env, url)
    known = kept(env, url)
    assert (known.state, known.commit_sha) == (FollowState.REWRITTEN, moved)
    assert [one.words.split(". ")[0] for one in known.told] == [
        "The tag v2.0 was moved to another commit",
        "The tag v1.2 is not there any more",
    ]
    work_off(env)
    assert SkillVersion.objects.count() == 4
    assert "tags v*" in client.get("/skills/one").content.decode()


def test_tags_that_are_away_for_a_while_are_not_new_when_they_are_back() -> None:
    tips = {"refs/tags/v1": "1" * 40, "refs/tags/v2": "2" * 40}
    known = Followed("https://git.example/a/b", NOW, "test", tags="v*", tips=tips, seen_at=NOW)
    away, events = tags_seen(known, {}, NOW)
    assert (away.state, len(events), away.tips) == (FollowState.DELETED, 1, tips)
    assert tags_seen(away, {}, NOW)[1] == ()
    back, events = tags_seen(away, {**tips, "refs/tags/v3-rc1": "3" * 40, "refs/tags/v3": "4" * 40}, NOW)
    assert (list(back.left), back.state) == (["refs/tags/v3-rc1", "refs/tags/v3"], FollowState.FOLLOWING)
    names = ["v10", "v9.1", f"v{'9' * 200}", "v9", "v9-rc.1", "release", "v9-beta"]
    assert in_order(names) == ["release", "v9-beta", "v9-rc.1", "v9", "v9.1", "v10", f"v{'9' * 200}"]


def test_what_is_blocked_or_withdrawn_is_not_submitted_and_ending_ends_it(env: WorkerEnv, tmp_path: Path) -> None:
    path = make_repository(tmp_path / "followed.git", files("a"))
    url = begin(env, f"file://{path}")
    poll(env)
    work_off(env)
    quarantine_skill(env, "one", actor="test", reason="it is bad")
    commit(path, files("b"))
    assert again(env, url).submitted == 0
    add_block(env, BlockKind.REPO, url, actor="test", reason="enough")
    commit(path, files("c"))
    report = again(env, url)
    assert (report.looked, report.submitted, kept(env, url).state) == (0, 0, FollowState.BLOCKED)
    assert SubmissionEntry.objects.count() == 1
    unfollow(env, url, actor="test")
    with pytest.raises(NotFollowed):
        unfollow(env, url, actor="test")
    assert (poll(env).followed, kept(env, url).due_at) == (0, None)


def test_a_commit_with_many_new_skills_is_one_job_and_a_repository_without_any_says_so(
    env: WorkerEnv, tmp_path: Path
) -> None:
    path = make_repository(tmp_path / "followed.git", {"README.md": "nothing yet"})
    url = begin(env, f"file://{path}")
    poll(env)
    assert "There is no skill in that repository" in kept(env, url).reason
    again(env, url)
    assert "There is no skill in that repository" in kept(env, url).reason
    commit(path, skills(*(f"skill-{number:03}" for number in range(2 * SLICE + 1))))
    assert again(env, url).submitted == 2 * SLICE + 1
    assert (QueueMessage.objects.filter(kind=SUBMIT_JOB).count(), SubmissionEntry.objects.count()) == (1, 0)
    again(env, url)
    assert QueueMessage.objects.filter(kind=SUBMIT_JOB).count() == 1
    assert (kept(env, url).left, kept(env, url).reason) == ({}, "")
