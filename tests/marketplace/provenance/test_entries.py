"""Each withdrawal stands in the log, and so does its end."""

from __future__ import annotations

import json

import pytest

from marketplace.catalog import quarantine_skill, quarantine_version, restore, restore_version, unyank, yank_version
from marketplace.flags import FlagKind, clear, flag
from marketplace.models import LogLeaf
from marketplace.provenance.log import append_pending
from tests.marketplace.factories import publish_example
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)

SLUG, VERSION = "hello-skill", "0.0.1"
WHY = "a reason that is nobody's business"


def test_each_withdrawal_and_its_end_stand_in_the_log_in_order_without_the_reasons(env: WorkerEnv) -> None:
    publish_example(env)
    for of_version in (yank_version, unyank, quarantine_version, restore_version):
        of_version(env, SLUG, VERSION, actor="ada", reason=WHY)
    for of_skill in (quarantine_skill, restore):
        of_skill(env, SLUG, actor="ada", reason=WHY)
    kind = next(iter(FlagKind))
    assert flag(env, SLUG, kind, WHY, actor="ada")
    # The same flag again is no event.
    assert not flag(env, SLUG, kind, WHY, actor="ada")
    assert clear(env, SLUG, kind, actor="ada", reason=WHY)
    assert append_pending(env) == 9
    told = [json.loads(leaf.body) for leaf in LogLeaf.objects.order_by("number")]
    about_version = {"yanked", "unyanked", "version-quarantined", "version-restored", "flagged", "flag-cleared"}
    assert [one["type"] for one in told] == [
        *("published", "yanked", "unyanked", "version-quarantined", "version-restored"),
        *("quarantined", "restored", "flagged", "flag-cleared"),
    ]
    for one in told[1:]:
        assert (one["skill"], one.get("version")) == (SLUG, VERSION if one["type"] in about_version else None)
        assert not {WHY, "ada"} & {str(value) for value in one.values()}
    assert {one["cause"] for one in told[-2:]} == {str(kind)}
