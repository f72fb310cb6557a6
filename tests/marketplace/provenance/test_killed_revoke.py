"""Whatever dies while stolen keys are revoked, the next run goes on, and nothing is told or signed twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from pytest_django.fixtures import Settings

from marketplace.models import LogLeaf, LogPending, SigningKey, SkillVersion, VersionSignature
from marketplace.models.provenance import ReplacedSignature
from marketplace.provenance.key_rotation import ids_of
from marketplace.provenance.keys import read_keys, write_keys
from marketplace.provenance.signing import sign_published
from marketplace.provenance.verification import verify_version
from tests.killed_programs import run_killed
from tests.marketplace.factories import publish_example
from tests.marketplace.provenance.killed_revoke import WRITES
from vskill.environments import get_environment

pytestmark = pytest.mark.django_db(transaction=True)

SKILLS = 2
# Each write of the command, before and after. It marks and tells of two keys, remembers two new ones, and ends none.
PLACES = ("mark:1", "told:2", "append:1", "key:1", "key:2", "kept:2", "anew:2", "head:1")
POINTS = [
    f"p{number}:{name}:{when}:{count}"
    for number, (when, place) in enumerate((when, place) for place in PLACES for when in ("before", "after"))
    for name, count in [place.split(":")]
]


def test_stolen_keys_are_revoked_once_wherever_the_command_is_killed(
    tmp_path: Path, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    assert {place.split(":")[0] for place in PLACES} == set(WRITES)
    environments: dict[str, Any] = {}
    for point in POINTS:
        name = point.split(":")[0]
        file = tmp_path / f"{name}.pem"
        write_keys(file)
        environments[name] = {"hosts": [f"{name}.test"], "policy": {"signing_key_file": str(file)}}
    settings.VSKILL_ENVIRONMENTS = environments
    stolen = {}
    for name in environments:
        env = get_environment(name)
        for number in range(SKILLS):
            publish_example(env, name=f"skill-{number}")
        sign_published(env)
        stolen[name] = ids_of(read_keys(env.policy.signing_key_file))

    run_killed("tests.marketplace.provenance.killed_revoke", POINTS, environments, tmp_path / "data")

    for point in POINTS:
        name = point.split(":")[0]
        env = get_environment(name)
        capsys.readouterr()
        call_command("signing_key", "revoke", *stolen[name], "--environment", name, "--json")
        told = json.loads(capsys.readouterr().out)
        assert (len(told["versions"]), told["signedAnew"]) == (SKILLS, SKILLS), point
        keys = SigningKey.objects.filter(namespace=name)
        assert keys.count() == 4, point
        assert set(keys.filter(until=None).values_list("key_id", flat=True)) == set(told["newKeys"]), point
        assert ids_of(read_keys(env.policy.signing_key_file)) == tuple(told["newKeys"]), point
        kinds = list(LogLeaf.objects.filter(namespace=name).order_by("number").values_list("kind", flat=True))
        assert kinds == ["published"] * SKILLS + ["key-compromised"] * 2, point
        assert not LogPending.objects.filter(namespace=name).exists(), point
        replaced, present = (
            model.objects.filter(namespace=name).count() for model in (ReplacedSignature, VersionSignature)
        )
        assert (replaced, present) == (SKILLS, SKILLS), point
        for version in SkillVersion.objects.filter(namespace=name).select_related("skill"):
            assert [one for one in verify_version(env, version) if not one.holds] == [], point
    files = sorted(one.name for one in tmp_path.iterdir() if one.name.endswith(".new"))
    assert files == []
