"""Everything that can be asked about one skill: each route of the URL configuration, and each client's requests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from marketplace.git.packets import Mark, packet

_CONVERTER: Final = re.compile(r"<(?:\w+:)?(\w+)>")
# Its own login comes first, and its own permissions.
_ADMIN: Final = "/admin/"
_LIST_REFS: Final = packet(b"command=ls-refs\n") + Mark.FLUSH.value
_GIT: Final = {"content_type": "application/x-git-upload-pack-request", "HTTP_GIT_PROTOCOL": "version=2"}
# What a part of a path can be beside the first value, which is that of the skill.
_OF_PARTS: Final = {
    "name": ("{version}.zip", "{version}.tar.gz", "latest.zip", "{version}.intoto.json", "{version}.model.sig"),
    "slug": ("{slug}",),
    "owner": ("{handle}", "@{handle}"),
    "handle": ("{handle}",),
    "repo": ("{repo}",),
    "version": ("{version}",),
    "path": ("SKILL.md",),
    "submission_id": ("{submission}",),
    "reference": ("{report}",),
    "scan_id": ("{scan}",),
    "part": ("0", "pages", "collections"),
}
# Requests with a query that a client sends, by their paths.
_ASKED: Final = (
    *(f"/skills?{query}" for query in ("q={word}", "publisher={handle}", "prefix={start}", "sort=name", "view=table")),
    "/skills?compare={slug}&compare=open-skill",
    *(
        "/skills?q={word}&sort=name",
        "/skills?capability={capability}",
        "/skills?verdict=clear",
        "/skills?license={license}",
    ),
    *("/api/v1/skills?limit=200", "/api/v1/skills?sort=newest", "/api/v1/skills?publisher={handle}"),
    *("/api/v1/skills?q={word}", "/api/v1/skills?capability={capability}", "/api/v1/skills?tag={tag}"),
    *("/api/v1/search?q={word}", "/api/v1/search?q={slug}&mode=exact", "/api/search?q={word}"),
    *("/api/v1/skills/search?q={word}", "/api/v1/resolve?slug={slug}&hash={fingerprint}"),
    *("/api/v1/download?slug={slug}", "/api/v1/download?slug={slug}&version={version}"),
    *("/api/v1/blocklist/check?name={slug}", "/compare?skill={slug}", "/compare?skill={slug}&skill=open-skill"),
    *("/oembed?url=http://127.0.0.1:8000/skills/{slug}", "/queue?group=published", "/queue?repository={url}"),
    *("/api/v1/submissions?repoUrl={url}", "/queue?fragment=1", "/api/v1/skills/{slug}/file?path=SKILL.md"),
    *("/api/v1/skills/{slug}?ownerHandle={handle}", "/api/v1/skills/{slug}/versions/diff?from={version}&to={version}"),
    "/api/v1/skills/{slug}/versions/compare?from={version}&to={version}",
    *(f"/git/{name}.git/info/refs?service=git-upload-pack" for name in ("{handle}/{slug}", "{handle}", "-/everything")),
    *(
        "/skills/{slug}?version={version}",
        "/skills/{slug}/report?version={version}",
        "/feeds/new.atom?publisher={handle}",
    ),
)


@dataclass(frozen=True)
class Asked:
    """A request: its method, its path with places for what is asked about, and what is sent."""

    method: str
    path: str
    data: str = ""


def every_request() -> list[Asked]:
    """Return every request."""
    filled = [list(_filled(route)) for route in _routes("/", get_resolver().url_patterns)]
    made = [Asked("get", path) for paths in filled for path in paths]
    posted = [Asked("post", paths[0], "{{}}") for paths in filled if _takes_posts(paths[0])]
    return list(dict.fromkeys([*made, *(Asked("get", path) for path in _ASKED), *posted, *_posted()]))


def _takes_posts(path: str) -> bool:
    """Return whether a path may take a POST that is not about an account alone."""
    return path not in ("/sign-out", "/account") and not path.startswith(("/sign-in", "/api/cli", "/feeds", "/sitemap"))


def _posted() -> Iterator[Asked]:
    yield Asked("post", "/api/v1/skills/check-updates", _json(skills=[{"name": "{slug}", "currentVersion": "0.0.0"}]))
    for method, params in (
        ("skills/list", {}),
        ("skills/get", {"uri": "skill://{slug}/SKILL.md"}),
        ("resources/read", {"uri": "skill://{slug}/SKILL.md"}),
        ("resources/list", {}),
        ("tools/call", {"name": "search_skills", "arguments": {"query": "{slug}"}}),
    ):
        yield Asked("post", "/mcp", _json(jsonrpc="2.0", id=1, method=method, params=params))
    for name in ("{handle}/{slug}", "{handle}", "-/everything"):
        yield Asked("git", f"/git/{name}.git/git-upload-pack")


def _json(**body: Any) -> str:
    return re.sub(r"([{}])", r"\1\1", json.dumps(body)).replace("{{slug}}", "{slug}")


def _routes(start: str, patterns: list[URLPattern | URLResolver]) -> Iterator[str]:
    for pattern in patterns:
        route = start + str(pattern.pattern).removeprefix("^").removesuffix("$")
        if route.startswith(_ADMIN) or "(?P" in route:
            continue
        if isinstance(pattern, URLResolver):
            yield from _routes(route, pattern.url_patterns)
        else:
            yield route


def _filled(route: str) -> Iterator[str]:
    """Yield the paths of a route, with the values of the collection in the routes of collections."""
    paths = [route]
    while (found := _CONVERTER.search(paths[0])) is not None:
        of_collection = found[1] == "slug" and re.search(r"(collections/|git/-/)$", paths[0][: found.start()])
        values = ("everything",) if of_collection else _OF_PARTS.get(found[1], ("x",))
        paths = [path.replace(found[0], value, 1) for path in paths for value in values]
    yield from paths


def answers(client: Client, about: Mapping[str, str], requests: Iterable[Asked] = ()) -> dict[Asked, tuple[int, str]]:
    """Return the status and the body of each of ``requests`` about a skill, by default of every one."""
    return {one: _answer(client, one, about) for one in requests or every_request()}


def _answer(client: Client, one: Asked, about: Mapping[str, str]) -> tuple[int, str]:
    path = one.path.format(**about)
    sent: dict[str, Any] = {}
    if one.method == "git":
        sent = {"data": _LIST_REFS, **_GIT}
    elif one.method == "post":
        sent = {"data": one.data.format(**about), "content_type": "application/json"}
    response: Any = client.get(path) if one.method == "get" else client.post(path, **sent)
    content = b"".join(response.streaming_content) if response.streaming else response.content
    named = [response.headers.get(name, "") for name in ("Location", "Content-Disposition", "X-Checksum-SHA256")]
    return response.status_code, "\n".join((content.decode(errors="replace"), *named))
