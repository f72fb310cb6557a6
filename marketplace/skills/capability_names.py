"""The names of what a skill can do: one for each thing, whether an engine named it or its contract has it as a deed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from marketplace.skills.references import is_contract

# What engines call what a contract has a deed for.
DEED_OF: Final[dict[str, str]] = {
    "shell_execution": "executes",
    "dynamic_code_execution": "executes",
    "delegated_authentication": "reads_secrets",
    "filesystem_read": "reads_files",
    "network": "sends",
    "changes_agent_files": "changes_agent",
    "raises_rights": "escalates",
}
# It says of the network no more than that it is used, and beside one of these nothing.
NETWORK: Final = "network_egress"
_OF_NETWORK: Final = frozenset({"sends", "downloads", "sends_files", "runs_downloads"})


def name_of(capability: str) -> str:
    """Return the name of a capability that lists, filters and pages use; one without a deed keeps its own."""
    return DEED_OF.get(capability, capability)


def asked_names(capabilities: Iterable[Any], contract: Any) -> tuple[str, ...]:
    """Return the names of all that a version can do, each thing once.

    ``capabilities`` are what engines called it, and ``contract`` is the stored one, whose deeds come first.
    """
    deeds = [str(one["name"]) for one in contract["does"]] if is_contract(contract) else []
    names = dict.fromkeys(name_of(name) for name in (*deeds, *map(str, capabilities)))
    if not _OF_NETWORK.isdisjoint(names):
        names.pop(NETWORK, None)
    return tuple(names)
