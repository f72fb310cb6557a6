"""Read every skill of an MCP endpoint with fastmcp's own client, and print what it took as JSON: its process."""

from __future__ import annotations

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.skills import SkillsClientExtension


async def main(address: str) -> None:
    """List the skills at an address, and read all files of each, which the client compares with their digests."""
    async with Client(address, extensions=[SkillsClientExtension()]) as client:
        listed = await client.list_skills()
        read = {one.uri: await client.read_skill(one.uri) for one in listed}
        found = {uri: {path: len(file) for path, file in skill.files.items()} for uri, skill in read.items()}
        print(json.dumps(found))  # noqa: T201 - what the test reads


asyncio.run(main(sys.argv[1]))
