"""The contract of a version for programs: what it declares, what it does, and what can change after its check."""

from __future__ import annotations

from typing import Any

from marketplace.capabilities import left_unread
from marketplace.models import SkillVersion
from marketplace.skills.references import is_contract, reference_states
from vskill.environments import WorkerEnv
from vskill.kv.clock import isoformat


def contract_fields(env: WorkerEnv, version: SkillVersion) -> dict[str, Any]:
    """Return the fields ``contract`` and ``references`` of a version, both null where they were not recorded.

    ``leftUnread`` says that its scan did not read all of it, so that it may do more, and refer to more.
    """
    contract, unread = version.contract, left_unread(version)
    if not is_contract(contract):
        return {"contract": None, "references": None, "leftUnread": unread}
    states = reference_states(env, version)
    return {
        "contract": {
            "declares": contract["declares"],
            "does": [_with_places(one) for one in contract["does"]],
            "chains": [_with_places(one) for one in contract["chains"]],
        },
        "references": {
            "items": [
                {
                    **one,
                    "pinned": one["pinned"] or None,
                    "sinceCheck": _state(states.get(str(one["name"]).partition("#")[0])),
                }
                for one in contract["references"]
            ],
            "notListed": contract["left"],
        },
        "leftUnread": unread,
    }


def _with_places(one: dict[str, Any]) -> dict[str, Any]:
    places = [{"file": file, "line": line} for file, line in one["places"]]
    declared = {"declared": one["declared"] or None} if "declared" in one else {}
    return {**one, **declared, "places": places}


def _state(state: dict[str, Any] | None) -> dict[str, Any] | None:
    if state is None:
        return None
    return {
        "checkedAt": None if state["checked_at"] is None else isoformat(state["checked_at"]),
        "changedAt": None if state["changed_at"] is None else isoformat(state["changed_at"]),
        "failures": state["failures"],
        "error": state["error"] or None,
    }
