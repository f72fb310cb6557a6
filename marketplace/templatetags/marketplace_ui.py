"""Marks of the marketplace: verdicts, capabilities, findings and skill cards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from django import template

from marketplace.pages.wording import capability_words, published_words, severity_words, verdict_words

register = template.Library()


@register.inclusion_tag("components/badge.html")
def verdict_badge(verdict: str | None, label: str = "", large: bool = False, published: bool = False) -> dict[str, Any]:
    """Show a verdict in words beside its icon; a verdict that this version does not know is shown as not recorded.

    ``published`` says that it is the verdict of something that stands in the marketplace.
    """
    words = published_words(verdict) if published else verdict_words(verdict)
    return {"tone": words.tone, "icon": words.icon, "label": label or words.label, "large": large}


@register.inclusion_tag("components/badge.html")
def severity_badge(severity: str) -> dict[str, Any]:
    """Show how grave a finding is."""
    words = severity_words(severity)
    return {"tone": words.tone, "icon": words.icon, "label": words.label, "large": False}


@register.inclusion_tag("marketplace/components/capabilities.html")
def capability_chips(capabilities: Iterable[str] | None) -> dict[str, Any]:
    """Show what a skill asks for, apart from its verdict; ``None`` means that nobody looked."""
    if capabilities is None:
        return {"known": False, "chips": ()}
    return {"known": True, "chips": [capability_words(name) for name in capabilities]}


@register.inclusion_tag("marketplace/components/findings.html")
def findings_list(findings: Iterable[Any], file_base: str = "", query: str = "") -> dict[str, Any]:
    """Show findings: rule, severity, file and line, excerpt, why it matters, what to do.

    Each is a finding or its stored JSON. Places of one rule are shown together, in the order in which they came.
    ``file_base`` is the address below which the files can be opened (it ends in a slash), with ``query`` appended.
    """
    return {"findings": grouped(findings), "file_base": file_base, "query": query}


def grouped(findings: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the findings with those that say the same of different places as one with several places."""
    groups: dict[tuple[str, ...], dict[str, Any]] = {}
    for finding in findings:
        stored: Mapping[str, Any] = finding if isinstance(finding, Mapping) else finding.as_json()
        said = {name: str(stored.get(name) or "") for name in _SAID}
        group = groups.setdefault(tuple(said.values()), {**said, "places": []})
        group["places"].append({name: stored.get(name) or "" for name in _PLACE})
    return list(groups.values())


_SAID: Final = ("severity", "ruleId", "title", "why", "advice", "engine")
_PLACE: Final = ("file", "line", "excerpt")
