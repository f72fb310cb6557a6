"""Published skills over MCP at one address, read only: resources, a search, and the skills extension (SEP-2640)."""
