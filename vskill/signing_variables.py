"""The variable that names the keys with which the registry signs what it publishes."""

from __future__ import annotations

from typing import Final

from vskill.variable_kinds import TEXT
from vskill.variables import Variable, grouped

SIGNING_KEY_FILE: Final = "VSKILL_SIGNING_KEY_FILE"
SIGNING_VARIABLES: Final[list[Variable]] = grouped(
    "What it signs",
    Variable(
        SIGNING_KEY_FILE,
        TEXT,
        "",
        "absolute path of the file with the keys that sign what is published, in every environment that names none; "
        "without one nothing is signed; see [provenance.md](provenance.md)",
        shown="none",
        example="/etc/vskill/signing-keys.pem",
    ),
)
