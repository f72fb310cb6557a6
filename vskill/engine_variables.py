"""The variables about engines beside the two that come with the product, and about scanners outside it."""

from __future__ import annotations

from typing import Final

from vskill.variable_kinds import TEXT, json_object
from vskill.variables import Variable, grouped

SCAN_SECRET: Final = "VSKILL_EXTERNAL_SCAN_SECRET"  # noqa: S105 - the name of a variable, not a secret
ENGINE_VARIABLES: Final = grouped(
    "Other engines",
    Variable(
        "VSKILL_EXTERNAL_SCANNERS",
        json_object(),
        {},
        "JSON: scanners outside this registry that are asked about what is published, by name; see "
        "[engines.md](engines.md)",
        shown="{}",
        example='{"semgrep": "http://127.0.0.1:8200/scan"}',
    ),
    Variable(
        SCAN_SECRET,
        TEXT,
        "",
        "signs what is sent to those scanners and what they send back; needed where there are any",
        shown="none",
        secret=True,
    ),
    Variable(
        "VSKILL_ADVISER_URL",
        TEXT,
        "",
        "where the engine `adviser` asks a language model: an endpoint for chat completions, as OpenAI's",
        shown="none",
        example="https://models.example.org/v1/chat/completions",
    ),
    Variable("VSKILL_ADVISER_MODEL", TEXT, "", "the name of that model", shown="none"),
    Variable("VSKILL_ADVISER_KEY", TEXT, "", "the key for that endpoint", shown="none", secret=True),
    Variable(
        "VSKILL_CISCO",
        TEXT,
        "",
        "the program skill-scanner of Cisco's scanner, for the engine `cisco`",
        shown="where `make engines` installs it",
        example="/opt/cisco/bin/skill-scanner",
    ),
    Variable(
        "VSKILL_SEMGREP",
        TEXT,
        "",
        "the program semgrep, for `manage.py semgrep_scanner`",
        shown="where `make engines` installs it",
        example="/opt/semgrep/bin/semgrep",
    ),
)
