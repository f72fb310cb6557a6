"""The variables about who may use the registry, and the values of the options of an environment that they set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vskill.mail_variables import MAIL_VARIABLES
from vskill.sign_in_variables import SIGN_IN_VARIABLES
from vskill.variable_kinds import Fault, Kind
from vskill.variables import Variable, grouped

# Of an environment, by option; an empty role is none.
ACCESS_OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "access": ("open", "read-only", "closed"),
    "sign_in_role": ("", "viewer", "submitter", "reviewer", "operator"),
}


def _one_of(names: tuple[str, ...]) -> Kind:
    def read(text: str) -> str:
        if text not in names:
            raise Fault(f"{text!r} is none of {', '.join(name for name in names if name)}")
        return text

    return Kind("one of several", read)


ACCESS_VARIABLES: Final[list[Variable]] = (
    grouped(
        "Who may use it",
        Variable(
            "VSKILL_ACCESS",
            _one_of(ACCESS_OPTIONS["access"]),
            "open",
            "what strangers may: `open` read and submit, `read-only` read, `closed` nothing without sign-in; see "
            "[accounts.md](accounts.md)",
            matters=True,
        ),
        Variable(
            "VSKILL_SIGN_IN_ROLE",
            _one_of(ACCESS_OPTIONS["sign_in_role"]),
            "",
            "role of everybody who signs in and was granted none: viewer, submitter, reviewer or operator",
            shown="none",
        ),
    )
    + SIGN_IN_VARIABLES
    + MAIL_VARIABLES
)


def access_of(values: Mapping[str, Any]) -> dict[str, str]:
    """Return what these variables set in the policy of every environment that says nothing of it."""
    return {"access": values["VSKILL_ACCESS"], "sign_in_role": values["VSKILL_SIGN_IN_ROLE"]}
