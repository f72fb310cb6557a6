"""What operators do with followed repositories: by commands and in the admin, and what lacks the permission to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.core.management import CommandError
from django.test import Client

from marketplace.following import FollowState, follow_key
from marketplace.models import FollowedEntry, HistoryEvent
from submissions.models import SubmissionEntry
from tests.git_factory import commit, git, make_repository, skill_md
from tests.submissions.commands.run import run
from tests.submissions.following.followed import kept, make_due
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)
LIST = "/admin/marketplace/followedentry/"


def test_commands_follow_poll_list_and_end(env: WorkerEnv, tmp_path: Path) -> None:
    path = make_repository(tmp_path / "followed.git", {"SKILL.md": skill_md("one")})
    git(path, "tag", "v1")
    address, url = f"file://{path}", f"file://{path}".removesuffix(".git")
    for arguments, says in (
        (["--branch", "none"], "does not have branch none"),
        (["--branch", "a..b"], "cannot be the name of a branch"),
        (["--tags", "a b"], "no spaces"),
    ):
        with pytest.raises(CommandError, match=says):
            run("follow", address, *arguments)
    with pytest.raises(CommandError, match="no git repository"):
        run("follow", f"{address}-away")
    with pytest.raises(CommandError, match="not a page of it"):
        run("follow", "https://github.com/acme/skills/tree/main/skills")
    with pytest.raises(CommandError, match="Name a repository, or --list"):
        run("follow")
    dry = run("follow", address, "--tags", "v*", "--dry-run", "--json").document
    assert (dry["dryRun"], list(dry["found"]), FollowedEntry.objects.count()) == (True, ["refs/tags/v1"], 0)

    assert "its default branch" in run("follow", address, "--reason", "ours").out
    assert run("poll_followed", "--dry-run").out.startswith(f"due         {url}\n")
    done = run("poll_followed", "--json").document
    assert (done["submitted"], done["repositories"]) == (1, [[url, "following"]])
    assert SubmissionEntry.objects.get().value.count('"source":"follow"') == 1
    make_due(env, url)
    assert "1 followed, 1 looked at, 0 skills submitted" in run("poll_followed").out
    (listed,) = run("follow", "--list", "--json").document["followed"]
    assert (listed["repoUrl"], listed["state"], listed["tips"]) == (url, "following", 1)
    assert f"following   {url}  its default branch  seen 20" in run("follow", "--list").out
    assert run("unfollow", address, "--dry-run").out == f"{url} would not be followed any more: its default branch\n"
    assert run("unfollow", address, "--json").document == {"repoUrl": url, "ended": True}
    with pytest.raises(CommandError, match="Nobody follows"):
        run("unfollow", address)
    assert "0 followed" in run("follow", "--list").out
    # Begun again in another way, it begins anew.
    run("follow", address, "--tags", "v*")
    assert (kept(env, url).tags, kept(env, url).tips) == ("v*", {})
    actions = HistoryEvent.objects.filter(subject=follow_key(url)).order_by("id").values_list("action", "reason")
    assert list(actions) == [("followed", "its default branch. ours"), ("unfollowed", ""), ("followed", "tags v*.")]


def test_operators_follow_look_and_end_in_the_admin_and_see_what_was_taken_back(
    env: WorkerEnv, admin_client: Client, tmp_path: Path
) -> None:
    path = make_repository(tmp_path / "followed.git", {"SKILL.md": skill_md("one")})
    url = f"file://{path}".removesuffix(".git")
    form = {"address": f"file://{path}", "branch": "", "tags": "", "reason": "ours"}
    assert "not both" in admin_client.post(f"{LIST}add/", {**form, "branch": "a", "tags": "b"}).content.decode()
    assert "Follow a repository" in admin_client.get(f"{LIST}add/").content.decode()
    assert f"{url[1:]} is followed: its default branch." in _followed(
        admin_client.post(f"{LIST}add/", form, follow=True)
    )
    run("poll_followed")
    row = FollowedEntry.objects.get()
    assert kept(env, url).by == "admin"

    commit(path, {"SKILL.md": skill_md("one", "Other.")})
    tree = git(path, "rev-parse", "HEAD^{tree}").decode().strip()
    git(path, "update-ref", "refs/heads/main", git(path, "commit-tree", tree, "-m", "Forced").decode().strip())
    asked = {"ids": str(row.pk), "reason": "now"}
    admin_client.post(f"{LIST}operate/look/", asked)
    run("poll_followed")
    assert kept(env, url).state is FollowState.REWRITTEN
    shown = _followed(admin_client.get(f"{LIST}{row.pk}/change/"))
    for words in ("was rewritten (a force-push)", "followed by admin: its default branch. ours", "A newer one waits"):
        assert words in shown
    assert url in _followed(admin_client.get(f"{LIST}?state=rewritten"))
    assert url not in _followed(admin_client.get(f"{LIST}?state=deleted"))
    admin_client.post(f"{LIST}operate/unfollow/", asked)
    assert kept(env, url).state is FollowState.ENDED


def test_who_may_only_look_changes_nothing(env: WorkerEnv, client: Client, tmp_path: Path) -> None:
    path = make_repository(tmp_path / "followed.git", {"SKILL.md": skill_md("one")})
    run("follow", f"file://{path}")
    user = get_user_model().objects.create_user("eve", password="long enough to pass", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_followedentry"))
    client.force_login(user)
    row = FollowedEntry.objects.get()
    assert client.get(LIST).status_code == 200
    for address in (f"{LIST}add/", f"{LIST}operate/unfollow/", f"{LIST}operate/look/"):
        assert client.post(address, {"address": "acme/skills", "ids": str(row.pk), "reason": "x"}).status_code == 403
    assert FollowedEntry.objects.get().version == row.version


def _followed(answer: Any) -> str:
    assert answer.status_code == 200
    return str(answer.content.decode())
