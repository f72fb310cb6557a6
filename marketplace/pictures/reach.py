"""Draw what a skill can touch: files, network, commands, secrets and the agent's configuration."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from marketplace.capabilities import Capabilities

# By the names that ``skills.capability_names`` gives.
TARGETS: Final[dict[str, frozenset[str]]] = {
    "Files": frozenset({"reads_files", "filesystem_write", "sends_files"}),
    "Network": frozenset({"sends", "downloads", "network_egress", "sends_files", "runs_downloads"}),
    "Commands": frozenset({"executes", "escalates", "install_time_execution", "runs_downloads"}),
    "Secrets": frozenset({"reads_secrets", "reads_environment", "scoped_identity"}),
    "The agent": frozenset(
        {"changes_agent", "addresses_agent", "persists", "mcp_tools_detected", "prompt_surface_risk"}
    ),
}
_ROW: Final = 32
_MIDDLE: Final = _ROW * len(TARGETS) // 2


@dataclass(frozen=True)
class Target:
    """One thing that a skill may touch: ``seen`` are the names of what was seen, ``None`` where it is not known."""

    name: str
    seen: tuple[str, ...] | None

    @property
    def state(self) -> str:
        """Return in words whether it was seen to be touched."""
        return "not known" if self.seen is None else "touches it" if self.seen else "nothing seen"


def reach_of(capabilities: Capabilities) -> list[Target]:
    """Return what a skill with these capabilities touches; what was not seen is not known where files were not read."""
    found = {name: tuple(one for one in capabilities.names if one in deeds) for name, deeds in TARGETS.items()}
    return [Target(name, seen if seen or not capabilities.unread else None) for name, seen in found.items()]


def reach_together(skills: Iterable[Capabilities]) -> list[Target]:
    """Return what skills with these capabilities touch together.

    What one of them touches is touched; else it is not known where it is not known of one of them.
    """
    each = [reach_of(one) for one in skills]
    together = []
    for targets in zip(*each, strict=True):
        seen = tuple(dict.fromkeys(name for one in targets for name in one.seen or ()))
        known = bool(seen) or all(one.seen is not None for one in targets)
        together.append(Target(targets[0].name, seen if known else None))
    return together or [Target(name, ()) for name in TARGETS]


def draw_reach(targets: Iterable[Target], itself: str = "This skill") -> SafeString:
    """Return the map as SVG: a firm line to what is touched, a dashed one to what is not known, else none.

    ``itself`` is the name of what touches, of a dozen letters at most.
    """
    listed = list(targets)
    words = "; ".join(f"{one.name}: {one.state}" for one in listed)
    rows = format_html_join("", "{}", ((_row(number, one),) for number, one in enumerate(listed)))
    return format_html(
        '<svg class="reach" viewBox="0 0 320 {}" role="img" aria-label="{}">{}'
        '<rect class="self" x="1" y="{}" width="78" height="32" rx="6"/><text x="40" y="{}">{}</text></svg>',
        _ROW * len(listed),
        f"What it can touch. {words}.",
        rows,
        _MIDDLE - 16,
        _MIDDLE + 4,
        itself,
    )


def _row(number: int, target: Target) -> SafeString:
    middle = _ROW * number + _ROW // 2
    kind = "unknown" if target.seen is None else "touched" if target.seen else "untouched"
    line = (
        format_html('<path class="{}" d="M79 {}C115 {} 105 {} 141 {}"/>', kind, _MIDDLE, _MIDDLE, middle, middle)
        if kind != "untouched"
        else ""
    )
    return format_html(
        '{}<rect class="{}" x="141" y="{}" width="178" height="26" rx="6"/>'
        '<text class="{}" x="230" y="{}">{}: {}</text>',
        line,
        kind,
        middle - 13,
        kind,
        middle + 4,
        target.name,
        target.state,
    )
