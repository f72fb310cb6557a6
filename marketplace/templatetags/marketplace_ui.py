"""Template tags of the marketplace: badges of verdicts and severities, capabilities, findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote

from django import template
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from marketplace.capabilities import Capabilities
from marketplace.catalog import HowMany
from marketplace.pages.file_parts import at_line
from marketplace.pages.wording import FLAGGED, capability_words, published_words, severity_words, verdict_words
from marketplace.pictures.columns import Picture
from vskill.templatetags.ui import badge, number

register = template.Library()


@register.filter
def how_many(found: HowMany | None) -> str:
    """Return a count with thousands separators, with a plus where there may be more, or a dash for ``None``."""
    return number(found.number if found is not None else None) + ("+" if found is not None and found.or_more else "")


@register.simple_tag
def verdict_badge(
    verdict: str | None, label: str = "", large: bool = False, published: bool = False, flag_reason: str = ""
) -> SafeString:
    """Draw a verdict in words with its icon; an unknown verdict is shown as not recorded.

    ``label`` replaces the words, ``large`` selects the size, and ``published`` says that the verdict belongs to a
    published version (see ``published_words``). With a ``flag_reason`` the version is shown as flagged instead.
    """
    words = FLAGGED if flag_reason else published_words(verdict) if published else verdict_words(verdict)
    return badge(words.tone, words.icon, label or words.label, large)


@register.simple_tag
def severity_badge(severity: str) -> SafeString:
    """Draw the severity of a finding."""
    words = severity_words(severity)
    return badge(words.tone, words.icon, words.label)


@register.simple_tag
def capability_chips(capabilities: Capabilities) -> SafeString:
    """Draw the capabilities of a skill, apart from its verdict, and whether more are possible."""
    return _chips(capabilities)


@register.simple_tag
def named_chips(names: Iterable[str]) -> SafeString:
    """Draw some capabilities by their names."""
    return _chips(Capabilities(tuple(names)))


@lru_cache(maxsize=256)
def _chips(capabilities: Capabilities) -> SafeString:
    """Draw capabilities; the same few sets stand in most rows of a table, so they are kept."""
    chips = [capability_words(name) for name in capabilities.names]
    shown = {"known": capabilities.known, "chips": chips, "unread": capabilities.unread}
    return render_to_string("marketplace/components/capabilities.html", shown)


@register.inclusion_tag("marketplace/components/findings.html")
def findings_list(findings: Iterable[Any], file_base: str = "", query: str = "") -> dict[str, Any]:
    """Show findings: rule, severity, file and line, excerpt, why it matters, what to do.

    Each of ``findings`` is a finding or its stored JSON. Locations of one rule are shown together, in their order.
    ``file_base`` is the URL below which files can be opened (with a trailing slash), and ``query`` is appended to it.
    """
    return {"findings": grouped(findings), "file_base": file_base, "query": query}


@register.inclusion_tag("marketplace/components/contract.html")
def contract_table(contract: Mapping[str, Any] | None, file_base: str = "", query: str = "") -> dict[str, Any]:
    """Show what a skill declares beside what it does; ``file_base`` and ``query`` are those of ``findings_list``.

    ``contract`` is that of ``contract_context``, ``None`` where none was recorded.
    """
    return {"contract": contract, "file_base": file_base, "query": query}


@register.inclusion_tag("marketplace/components/references.html")
def references_table(
    contract: Mapping[str, Any] | None, file_base: str = "", query: str = "", watched: bool = False
) -> dict[str, Any]:
    """Show what a skill refers to outside itself.

    ``contract``, ``file_base`` and ``query`` are those of ``contract_table``. ``watched`` adds what was found there
    since the check.
    """
    return {"contract": contract, "file_base": file_base, "query": query, "watched": watched}


@register.inclusion_tag("marketplace/components/place.html")
def place_link(place: Mapping[str, Any], file_base: str = "", query: str = "") -> dict[str, Any]:
    """Show the ``file`` and ``line`` of a place, and lead there; ``file_base``, ``query`` as in ``findings_list``."""
    href = at_line(f"{file_base}{quote(str(place['file']))}{query}", place.get("line") or 0) if file_base else ""
    return {"place": place, "href": href}


def grouped(findings: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the findings as dictionaries, with findings that differ only in their location merged into one.

    Each has the keys of ``_SHARED`` and ``locations``, a list of ``file``, ``line`` and ``excerpt``.
    """
    groups: dict[tuple[str, ...], dict[str, Any]] = {}
    for finding in findings:
        stored: Mapping[str, Any] = finding if isinstance(finding, Mapping) else finding.as_json()
        shared = {name: str(stored.get(name) or "") for name in _SHARED}
        group = groups.setdefault(tuple(shared.values()), {**shared, "locations": []})
        group["locations"].append({name: stored.get(name) or "" for name in _LOCATION})
    return list(groups.values())


_SHARED: Final = ("severity", "ruleId", "title", "why", "advice", "engine", "waived")
_LOCATION: Final = ("file", "line", "excerpt")


@register.simple_tag
def columns_figure(picture: Picture | None, what: str, unit: str) -> SafeString:
    """Draw a picture of numbers over time with its table.

    ``what`` names it where there is none, and ``unit`` what is counted.
    """
    return _columns_figure(picture, what, unit)


@lru_cache(maxsize=128)
def _columns_figure(picture: Picture | None, what: str, unit: str) -> SafeString:
    # Its table has dozens of rows, and is the same until a number of it changes.
    return render_to_string("marketplace/components/columns.html", {"picture": picture, "what": what, "unit": unit})
