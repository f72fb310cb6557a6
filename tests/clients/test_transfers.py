"""The clawhub client, unmodified, that hands skills over on a running server."""

from __future__ import annotations

from pathlib import Path

from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model

from marketplace.models import SkillEntry, SkillTransfer
from marketplace.ownership.claims import grant
from tests.clients.conftest import ClientMachine, LiveServer
from tests.clients.test_uploads import write_skill
from tests.marketplace.factories import publish_example
from tests.submissions.front_door import drain
from vskill.access_tokens.scopes import Scope
from vskill.access_tokens.tokens import make_token
from vskill.environments import WorkerEnv


def logged_in(
    env: WorkerEnv, server: LiveServer, home: Path, publisher: str = "", scope: Scope = Scope.PUBLISH
) -> ClientMachine:
    """Return the machine of an account, called as its folder is, that may have claimed a publisher."""
    user, _new = get_user_model()._default_manager.get_or_create(username=home.name.partition("-")[0])
    if publisher:
        grant(env, user, f"github.com/{publisher}", publisher, actor="op", reason="known to us")
    machine = ClientMachine(home, server.url)
    token = make_token(env, user, name="laptop", scopes=[scope])[1]
    machine.shell(f"npx clawhub login --token {token} --no-input")
    return machine


def test_it_offers_lists_accepts_rejects_and_cancels(env: WorkerEnv, server: LiveServer, tmp_path: Path) -> None:
    publish_example(env, name="pdf-tools")
    ada = logged_in(env, server, tmp_path / "ada", "acme")
    grace = logged_in(env, server, tmp_path / "grace", "newco")
    eve = logged_in(env, server, tmp_path / "eve", "evil")
    ada.shell("npx clawhub install @acme/pdf-tools")
    assert "No incoming transfers." in grace.shell("npx clawhub transfer list")

    offer = "npx clawhub transfer request @acme/pdf-tools @newco --message 'we split up' --yes"
    assert "Transfer requested for pdf-tools to @newco" in ada.shell(offer)
    assert "pdf-tools -> @newco (expires in 30d)" in ada.shell("npx clawhub transfer list --outgoing")
    assert "pdf-tools -> @acme (expires in 30d)" in grace.shell("npx clawhub transfer list")
    assert "Transfer cancelled (pdf-tools)" in ada.shell("npx clawhub transfer cancel pdf-tools --yes")
    ada.shell(offer)
    assert "Transfer rejected (pdf-tools)" in grace.shell("npx clawhub transfer reject @acme/pdf-tools --yes")
    ada.shell(offer)
    assert "offered to a publisher already" in ada.shell(offer, code=1)

    reader = logged_in(env, server, tmp_path / "grace-reader", scope=Scope.READ)
    for machine, line, words in [
        (eve, "accept pdf-tools", "There is no open offer of pdf-tools to a publisher that you have claimed"),
        (eve, "request pdf-tools @evil", "pdf-tools is handed over by the account"),
        (ada, "accept pdf-tools", "There is no open offer"),
        (ada, "request nothing @newco", "Skill not found"),
        (ada, "request @newco/pdf-tools @newco", "Skill not found"),
        (ada, "request pdf-tools @unheard-of", "Nobody here has claimed a publisher called 'unheard-of'"),
        (reader, "accept pdf-tools", "This token was made for read"),
    ]:
        assert words in machine.shell(f"npx clawhub transfer {line} --yes", code=1), line
    machine = ClientMachine(tmp_path / "stranger", server.url)
    assert "Not logged in" in machine.shell("npx clawhub transfer list", code=1)
    assert SkillTransfer.objects.filter(state="offered").count() == 1

    assert "Transfer accepted (pdf-tools)" in grace.shell("npx clawhub transfer accept @acme/pdf-tools --yes")
    assert SkillEntry.objects.get(slug="pdf-tools").publisher_handle == "newco"
    # What was installed under the former name goes on being updated, and the new one leads to the skill too.
    assert "pdf-tools" in ada.shell("npx clawhub update --all")
    grace.shell("npx clawhub install @newco/pdf-tools")


def test_it_hands_an_upload_to_a_publisher_that_goes_on_uploading(
    env: WorkerEnv, server: LiveServer, tmp_path: Path
) -> None:
    ada = logged_in(env, server, tmp_path / "ada")
    grace = logged_in(env, server, tmp_path / "grace", "newco")
    write_skill(ada.work / "pdf-tools")
    ada.shell("npx clawhub publish pdf-tools --version 1.0.0")
    async_to_sync(drain)(env)
    ada.shell("npx clawhub transfer request @ada/pdf-tools @newco --yes")
    grace.shell("npx clawhub transfer accept pdf-tools --yes")

    write_skill(grace.work / "pdf-tools", "More.\n")
    grace.shell("npx clawhub publish pdf-tools --version 1.1.0 --owner newco")
    async_to_sync(drain)(env)
    ada.shell("npx clawhub install @ada/pdf-tools")
    assert (ada.work / "skills/@ada/pdf-tools/SKILL.md").read_text().endswith("More.\n")
