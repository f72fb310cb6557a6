"""The words, icon and tone of each verdict, severity and capability, for all pages.

"Nothing found" is never called safe: engines know patterns, and the absence of a pattern is no promise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from marketplace.judgement import NO_ENGINE, UNSCANNED
from marketplace.skills.capability_names import name_of


@dataclass(frozen=True)
class Words:
    """How a verdict, severity or capability is shown: ``label`` in a badge, ``sentence`` where there is room.

    ``icon`` is the name of an icon, and ``tone`` the colour: ``good``, ``note``, ``hold``, ``bad`` or ``idle``.
    """

    label: str
    sentence: str
    icon: str
    tone: str = "idle"


VERDICTS: Final[dict[str, Words]] = {
    "clear": Words(
        "No known pattern",
        "Every check that was due has run and recognised nothing. That is not a promise: read what it asks for"
        " before you install it.",
        "check",
        "good",
    ),
    "notes": Words(
        "Checked, with notes",
        "The checks found things that do not stop it from being published. Read them before you install it.",
        "info",
        "note",
    ),
    "held": Words(
        "Held for a person",
        "A finding needs human judgement. Until somebody has looked, it is not published.",
        "pause",
        "hold",
    ),
    "held_high": Words(
        "Held, strong findings",
        "Strong findings, or several that agree, need human judgement. Until then it is not published.",
        "pause",
        "hold",
    ),
    "inconclusive": Words(
        "Not scanned",
        "A check that was due could not finish, so there is no verdict. That says nothing good or bad.",
        "question",
    ),
    "refused": Words(
        "Refused", "It is on the block list, or matched known bad content. It is not published.", "ban", "bad"
    ),
    "format": Words(
        "Format problem",
        "It does not follow the format of a skill, or is too large. This is no accusation: its author can change it"
        " and submit again.",
        "alert",
    ),
}
# The verdict "notes" without findings: the note is about the capabilities.
NOTES_WITHOUT_FINDINGS: Final = Words(
    "Checked, with notes",
    "No known pattern was recognised. It is marked for what it asks for: read that before you install it.",
    "info",
    "note",
)
# The verdict "notes" where a reviewer accepts what would hold it.
NOTES_WITH_WAIVERS: Final = Words(
    "Findings accepted by a reviewer",
    "The checks would hold it; a reviewer of this registry accepts what they found, for a time. Read the findings and"
    " the reasons before you install it.",
    "flag",
    "hold",
)
FLAGGED: Final = Words(
    "Flagged after publication",
    "Something became known about it after it was published. Read why before you install or keep it.",
    "alert",
    "bad",
)
# A skill is published without a scan only where the policy says so: for trusted owners, or for all.
NOT_SCANNED: Final = Words(
    "Not scanned: its owner is trusted here",
    "Only its format was checked: no engine has read it, because its owner is trusted here. Read it before you install"
    " it.",
    "question",
    "hold",
)
ENGINELESS: Final = Words(
    "Not scanned: this registry runs no engine",
    "Only its format was checked: no engine has read it, because this registry runs none. Read it before you install"
    " it.",
    "question",
    "hold",
)
# Verdicts that hold a skill. A published skill has one only where an operator approved it, with its findings, or where
# its owner is trusted.
APPROVED: Final[dict[str, Words]] = {
    **dict.fromkeys(
        ("held", "held_high"),
        Words(
            "Approved with findings",
            "The checks held it, and an operator approved it. Read the findings before you install it.",
            "flag",
            "hold",
        ),
    ),
    "inconclusive": Words(
        "Approved, not scanned",
        "A check that was due could not finish; an operator of this registry approved it all the same.",
        "question",
        "hold",
    ),
}
NO_VERDICT: Final = Words("No verdict recorded", "No verdict is stored for this version.", "question")

SEVERITIES: Final[dict[str, Words]] = {
    "critical": Words("Critical", "", "alert", "bad"),
    "high": Words("High", "", "alert", "bad"),
    "medium": Words("Medium", "", "alert", "hold"),
    "low": Words("Low", "", "info", "note"),
    "info": Words("Info", "", "info"),
}

# What a skill does, by the names that its contract gives.
DEEDS: Final[dict[str, Words]] = {
    "reads_files": Words("Reads files", "It reads files beyond its own text.", "folder"),
    "reads_environment": Words("Reads the environment", "It reads variables of the environment.", "terminal"),
    "reads_secrets": Words("Reads secrets", "It reads keys, tokens or passwords.", "key", "hold"),
    "sends": Words("Sends data", "It sends data over the network.", "globe"),
    "downloads": Words("Downloads", "It fetches something over the network.", "globe"),
    "executes": Words("Runs commands or code", "It runs commands of the system, or code.", "terminal", "hold"),
    "persists": Words("Stays after it ends", "It has something run again later.", "hook", "hold"),
    "changes_agent": Words(
        "Changes the agent's settings or memory", "It writes what the agent obeys later.", "pencil", "hold"
    ),
    "escalates": Words("Raises its rights", "It raises its rights, or takes protection off.", "alert", "hold"),
    "hides": Words("Hides something", "A part of it is hidden from those who read it.", "question", "hold"),
    "addresses_agent": Words(
        "Turns the agent against its user", "It tells the agent to work against whom it serves.", "alert", "hold"
    ),
}
# What only engines know, by the names that they give; others are shown by their own name.
CAPABILITIES: Final[dict[str, Words]] = {
    "network_egress": Words(
        "Uses the network, not known how", "It sends or fetches data over the network; which, is not known.", "globe"
    ),
    "sends_files": Words("Sends files", "It sends files over the network.", "globe", "hold"),
    "runs_downloads": Words("Runs what it downloads", "It fetches code and runs it.", "code", "hold"),
    "install_time_execution": Words("Runs on installation", "Installing it runs something.", "package", "hold"),
    "filesystem_write": Words("Writes files", "It creates, changes or deletes files.", "pencil"),
    "mcp_tools_detected": Words("Brings tools", "It defines or connects MCP tools.", "plug"),
    "prompt_surface_risk": Words("Steers the model", "Parts of it reach the model as instructions.", "hook"),
    "scoped_identity": Words("Limited identity", "It signs in with an identity that is limited on purpose.", "user"),
}


def verdict_words(verdict: str | None) -> Words:
    """Return the words for a verdict; an absent or unknown one is shown as not recorded, never as good."""
    unscanned = {UNSCANNED: NOT_SCANNED, NO_ENGINE: ENGINELESS}.get((verdict or "").lower())
    return unscanned or VERDICTS.get((verdict or "").lower(), NO_VERDICT)


def published_words(verdict: str | None) -> Words:
    """Return the words for the verdict of a published version; one that the checks held was approved by an operator."""
    return APPROVED.get((verdict or "").lower()) or verdict_words(verdict)


def version_words(verdict: str | None, findings: Sequence[Mapping[str, Any]], *, summary: str = "") -> Words:
    """Return the words for a published version's verdict on a page that also shows its findings.

    ``findings`` are its stored findings. ``summary`` is the sentence that was stored with the verdict; for an approved
    version it replaces ours, because it has the operator's reason.
    """
    words = published_words(verdict)
    if words in APPROVED.values() and summary:
        return replace(words, sentence=f"{summary.rstrip('.')}. Read the findings before you install it.")
    if words is not VERDICTS["notes"]:
        return words
    if any(one.get("waived") for one in findings):
        return NOTES_WITH_WAIVERS
    return words if findings else NOTES_WITHOUT_FINDINGS


def severity_words(severity: str) -> Words:
    """Return the words for a severity; an unknown one keeps its own name."""
    return SEVERITIES.get(severity.lower()) or Words(severity.capitalize() or "Unrated", "", "question")


def capability_words(capability: str) -> Words:
    """Return the words for a capability or a deed; an unknown one keeps its own name, so that nothing is hidden."""
    name = name_of(capability.lower())
    known = DEEDS.get(name) or CAPABILITIES.get(name)
    return known or Words(capability.replace("_", " ").replace("-", " ").capitalize(), "", "dot")
