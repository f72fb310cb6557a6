"""The versions of MCP that are spoken here, and which of them a message is in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.http import HttpRequest

from marketplace.mcp.errors import HEADER_MISMATCH, UNSUPPORTED_VERSION, Refused
from vskill.hidden_characters import visible

LATEST: Final = "2026-07-28"
# Newest first. A client begins with ``initialize`` in these, and not in the latest one.
WITH_HANDSHAKE: Final = ("2025-11-25", "2025-06-18", "2025-03-26")
SPOKEN: Final = (LATEST, *WITH_HANDSHAKE)
WITH_BATCHES: Final = frozenset({"2025-03-26"})
# As the later ones with a handshake say of a client that names none: there was no header for it yet.
UNNAMED: Final = "2025-03-26"
_IN_BODY: Final = "io.modelcontextprotocol/protocolVersion"
_LONGEST_SHOWN: Final = 40


def version_in_header(request: HttpRequest) -> str:
    """Return the version that a request names in its header, empty for none; raise ``Refused`` for an unknown one."""
    named: str = request.headers.get("MCP-Protocol-Version", "")
    return _spoken(named) if named else ""


def version_of(header: str, params: Mapping[str, Any]) -> str:
    """Return the version of a message from that of the ``header``, or else from its body.

    Raises ``Refused`` where they differ, and for an unknown one.
    """
    about = params.get("_meta")
    named = about.get(_IN_BODY) if isinstance(about, dict) else None
    if named is None:
        return header or UNNAMED
    if header and named != header:
        raise Refused(HEADER_MISMATCH, "The header MCP-Protocol-Version names another version than the body.", 400)
    return _spoken(named)


def negotiated(params: Mapping[str, Any]) -> str:
    """Return the version that ``initialize`` answers: the one asked for, or the newest where that is none of ours."""
    asked = params.get("protocolVersion")
    return asked if isinstance(asked, str) and asked in WITH_HANDSHAKE else WITH_HANDSHAKE[0]


def _spoken(named: Any) -> str:
    if isinstance(named, str) and named in SPOKEN:
        return named
    shown = visible(str(named)[:_LONGEST_SHOWN], _LONGEST_SHOWN)
    message = f"The version {shown!r} of MCP is not spoken here. There are: {', '.join(SPOKEN)}."
    raise Refused(UNSUPPORTED_VERSION, message, 400, {"supported": [*SPOKEN], "requested": shown})
