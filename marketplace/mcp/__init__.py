"""Published skills over MCP: the methods of the skills extension (SEP-2640), read only, at one address."""
