"""The errors of JSON-RPC, and of MCP, that a message is answered with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from marketplace.errors import MarketplaceError

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
NO_METHOD: Final = -32601
INVALID_PARAMS: Final = -32602
HEADER_MISMATCH: Final = -32020
UNSUPPORTED_VERSION: Final = -32022


class Refused(MarketplaceError):
    """A message is answered with an error: its ``number``, its ``data``, and the HTTP ``status`` of the answer."""

    code = "mcp_refused"

    def __init__(self, number: int, message: str, status: int = 200, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.number = number
        self.status = status
        self.data = data

    def shape(self) -> dict[str, Any]:
        """Return the error as JSON-RPC has it."""
        about = {} if self.data is None else {"data": self.data}
        return {"code": self.number, "message": str(self), **about}
