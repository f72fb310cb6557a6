"""What pages show of a stored contract: what a skill declares beside what it does, and what can change afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from marketplace.capabilities import left_unread
from marketplace.models import SkillVersion
from marketplace.pages.wording import DEEDS, Words
from marketplace.skills.references import is_contract, reference_states
from vskill.environments import WorkerEnv

CHAINS: Final = {
    "secrets_to_network": "From secrets to the network",
    "download_to_execution": "From a download to running it",
}
FIELDS: Final = {
    "description": "Description",
    "allowed-tools": "Tools it asks for",
    "compatibility": "What it needs",
    "metadata": "Metadata",
}
KINDS: Final = {
    "address": "Address",
    "installer": "Installer",
    "dependency": "Package",
    "tool_server": "Tool server",
    "file": "File outside the skill",
}
ROLES: Final = {
    "linked": "a link for people",
    "used": "used by it",
    "read": "read by the agent",
    "run": "fetched and run",
}
PINS: Final = {"hash": "By hash", "version": "By version"}


def contract_context(
    contract: Any, states: Mapping[str, Mapping[str, Any]] | None = None, *, unread: bool = False
) -> dict[str, Any] | None:
    """Return what the tables of a stored ``contract`` show, or ``None`` where none was stored or it cannot be read.

    ``states`` says of each address what was found there since the check (see ``skills.references``). ``unread`` says
    that something was not read, so that there may be more than the contract has.
    """
    if not is_contract(contract):
        return None
    return {
        "declares": [
            {"label": label, "text": str(contract["declares"].get(name, ""))} for name, label in FIELDS.items()
        ],
        "does": [_deed(one) for one in contract["does"]],
        "chains": [_chain(one) for one in contract["chains"]],
        "references": [_reference(one, states or {}) for one in contract["references"]],
        "left": int(contract["left"]),
        "unread": unread,
    }


def contract_of_version(env: WorkerEnv, version: SkillVersion) -> dict[str, Any] | None:
    """Return what the tables of a version's contract show, with what was found at its references since the check."""
    return contract_context(version.contract, reference_states(env, version), unread=left_unread(version))


def _deed(one: Mapping[str, Any]) -> dict[str, Any]:
    name = str(one["name"])
    words = DEEDS.get(name) or Words(name.replace("_", " ").capitalize(), "", "dot")
    field, _, said = str(one["declared"]).partition(": ")
    return {
        "label": words.label,
        "icon": words.icon,
        "declared": bool(one["declared"]),
        "field": FIELDS.get(field, field).lower(),
        "said": said,
        "places": _places(one["places"]),
    }


def _chain(one: Mapping[str, Any]) -> dict[str, Any]:
    name = str(one["name"])
    return {
        "label": CHAINS.get(name, name.replace("_", " ").capitalize()),
        "holds": bool(one["holds"]),
        "places": _places(one["places"]),
    }


def _places(places: Iterable[Any]) -> list[dict[str, Any]]:
    return [{"file": str(file), "line": int(line)} for file, line in places]


def _reference(one: Mapping[str, Any], states: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    name, kind, pinned = str(one["name"]), str(one["kind"]), str(one["pinned"])
    is_file = kind == "file"
    return {
        "kind": KINDS.get(kind, kind),
        "name": name,
        "role": "" if is_file else ROLES.get(str(one["role"]), ""),
        "place": {"file": str(one["file"]), "line": int(one["line"])},
        "pinned": PINS.get(pinned, ""),
        "can_be_pinned": not is_file,
        "state": states.get(name.partition("#")[0]),
    }
