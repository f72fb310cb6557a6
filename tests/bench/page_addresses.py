"""The addresses that are measured: every route of the public site and API, each list in its orders and filters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Final
from urllib.parse import urlencode

from marketplace.pages.list_query import SORTS
from submissions.states import Group
from tests.bench.pages import ADMIN, LIST, ONE, SEARCH_API, SEARCH_PAGE

ORDERS: Final = tuple(sort for sort in SORTS if sort != "relevance")
API_ORDERS: Final = ("newest", "updated", "name", "downloads", "trending")


@dataclass(frozen=True)
class Address:
    """An address and the kind of page that it is, which has a bar."""

    kind: str
    path: str

    @property
    def shown(self) -> str:
        """Return the address without the long part of a cursor."""
        before, found, _rest = self.path.partition("cursor=")
        return f"{before}{found}..." if found else self.path


@dataclass(frozen=True)
class Sample:
    """What a registry holds, of which addresses are made.

    ``filters`` are common values of the facets that are counted together, ``rare`` rare ones, and ``alone`` are common
    values of the others. ``small`` and ``large`` are publishers. ``deep``
    are cursors of the API by order, far into its list.
    """

    slug: str
    version: str
    collection: str
    submission: str
    repository: str
    small: str
    large: str
    filters: Mapping[str, str]
    rare: Mapping[str, str]
    alone: Mapping[str, str]
    deep: Mapping[str, str]


def public_addresses(sample: Sample) -> Iterator[Address]:
    """Yield the addresses that visitors and clients read."""
    yield Address(LIST, "/")
    for filters in ({}, *_choices(sample.filters), *_choices(sample.rare)):
        for sort in ORDERS:
            yield Address(LIST, f"/skills?{urlencode({**filters, 'sort': sort})}")
    yield from (Address(LIST, f"/skills?{urlencode(one)}") for one in _lists_of_values(sample))
    for handle in (sample.small, sample.large):
        yield Address(LIST, f"/publishers/{handle}")
        yield Address(LIST, f"/@{handle}")
        yield Address(LIST, f"/publishers/{handle}/feed.atom")
        yield Address(LIST, f"/skills?{urlencode({'publisher': handle})}")
        yield Address(LIST, f"/{handle}/.well-known/agent-skills/index.json")
        yield Address(LIST, f"/publishers/{handle}/.well-known/agent-skills/index.json")
    for feed in ("new", "updated", "withdrawn"):
        yield Address(LIST, f"/feeds/{feed}.atom")
    yield from (Address(LIST, path) for path in ("/sitemap.xml", "/sitemap/pages", "/sitemap/0"))
    for below in ("", f"/{sample.collection}"):
        yield from (Address(LIST, f"/collections{below}"), Address(LIST, f"/api/v1/collections{below}"))
    yield Address(LIST, f"/collections/{sample.collection}/.well-known/agent-skills/index.json")
    yield from (Address(LIST, f"{place}/marketplace.json") for place in ("", "/.claude-plugin"))
    yield from (Address(LIST, f"/publishers/{one}/marketplace.json") for one in (sample.small, sample.large))
    yield Address(LIST, f"/collections/{sample.collection}/marketplace.json")
    for repository in (sample.small, sample.large, f"-/{sample.collection}"):
        for end in ("", ".git"):
            yield Address(LIST, f"/git/{repository}{end}/info/refs?service=git-upload-pack")
    yield Address(LIST, f"/feeds/new.atom?{urlencode({'q': 'pdf', **sample.filters})}")
    yield Address(LIST, "/queue")
    yield Address(LIST, f"/queue?{urlencode({'repository': sample.repository})}")
    for group in Group:
        yield Address(LIST, f"/queue?{urlencode({'group': group})}")
    yield from (Address(LIST, f"/api/v1/skills?sort={sort}") for sort in API_ORDERS)
    yield from (deep for _first, deep in deep_beside_first(sample))
    yield Address(LIST, "/api/v1/blocklist")
    for words in (sample.slug, "pdf", "extract invoices", "ext", "zzzzqqq"):
        query = urlencode({"q": words})
        yield Address(SEARCH_PAGE, f"/skills?{query}")
        for place in ("/api/search", "/api/v1/search", "/api/v1/skills/search"):
            yield Address(SEARCH_API, f"{place}?{query}")
    for words in ("pdf", "ext"):
        yield from (Address(SEARCH_PAGE, f"/skills?{urlencode({'q': words, 'sort': sort})}") for sort in ORDERS)
        for name, value in {**sample.filters, **sample.alone}.items():
            query = urlencode({"q": words, name: value})
            yield from (Address(SEARCH_PAGE, f"/skills?{query}"), Address(SEARCH_API, f"/api/v1/search?{query}"))
    yield from (Address(ONE, path) for path in _single(sample))


def deep_beside_first(sample: Sample) -> Iterator[tuple[Address, Address]]:
    """Yield the first page of each order of the API, and one far into the same list."""
    for sort, cursor in sample.deep.items():
        first = Address(LIST, f"/api/v1/skills?sort={sort}")
        yield first, Address(LIST, f"/api/v1/skills?{urlencode({'sort': sort, 'cursor': cursor})}")


def _lists_of_values(sample: Sample) -> Iterator[dict[str, str]]:
    """Yield each value of the facets that are counted alone: in every order, and beside another filter."""
    for name, value in sample.alone.items():
        yield from ({name: value, "sort": sort} for sort in ORDERS)
        yield {name: value, "publisher": sample.small}
    for first, second in combinations({**sample.filters, **sample.alone}.items(), 2):
        if not {first[0], second[0]} <= sample.filters.keys():
            yield dict((first, second))
    yield dict(sample.alone)


def _choices(values: Mapping[str, str]) -> Iterator[dict[str, str]]:
    for size in range(1, len(values) + 1):
        yield from map(dict, combinations(values.items(), size))


def _single(sample: Sample) -> Iterator[str]:
    skill, submission = f"/skills/{sample.slug}", sample.submission
    yield f"/@{sample.repository.rsplit('/', 2)[-2]}/{sample.slug}"
    yield from (skill, f"{skill}/scan", f"{skill}/files/SKILL.md", f"{skill}/images/none.png")
    yield from (f"{skill}/download/{sample.version}.tar.gz", f"{skill}/download/{sample.version}.zip")
    index = ".well-known/agent-skills/index.json"
    yield from (f"{skill}/{index}", f"/{sample.small}@{sample.slug}/{index}", f"/{sample.small}/{sample.slug}/{index}")
    yield from (f"/{index}", "/.well-known/clawhub.json", "/.well-known/clawdhub.json")
    version = f"{skill}/versions/{sample.version}"
    yield from (f"{skill}/marketplace.json", f"{version}/marketplace.json", f"{version}/{index}", version)
    git = f"/git/{sample.small}/{sample.slug}"
    yield from (f"{git}/info/refs?service=git-upload-pack", f"{git}.git/info/refs?service=git-upload-pack")
    yield from (
        "/robots.txt",
        "/llms.txt",
        "/api/v1/openapi.json",
        f"{skill}/files",
        f"{skill}/compare",
        f"{skill}/badge.svg",
        f"{skill}/card",
        f"{skill}/report",
        "/reports/none",
    )
    yield f"/oembed?url=http://127.0.0.1:8000/skills/{sample.slug}"
    yield from (
        "/about/verification",
        "/about/api",
        f"/compare?skill={sample.slug}",
        "/submit",
        "/device",
        "/jobs/none",
        "/api/v1/jobs/none",
    )
    yield from (f"/submissions/{submission}", f"/api/v1/submissions/{submission}", "/api/v1/listings/none")
    api = "/api/v1"
    yield from (f"{api}/resolve?slug={sample.slug}&hash=0", f"{api}/download?slug={sample.slug}")
    yield from ("/.well-known/vskill-keys.json", "/.well-known/vskill-keys/none.pem")
    yield from (f"{api}/log", f"{api}/log/checkpoint", f"{api}/log/entries", f"{api}/log/inclusion?index=0")
    yield f"{api}/log/consistency?first=1"
    yield from (f"{api}/whoami", f"{api}/skills/-/upload")
    yield f"{api}/blocklist/check?name={sample.slug}"
    owner, repository = sample.repository.rsplit("/", 2)[-2:]
    package = f"/api/apm/v1/packages/{owner}/{sample.slug}/versions"
    yield from (package, f"{package}/{sample.version}/download")
    of_owner = f"{api}/skills/@{owner}/{sample.slug}"
    for named in (f"{api}/skills/{sample.slug}", of_owner, f"{api}/skills/{owner}/{repository}/{sample.slug}"):
        yield from (named, f"{named}/versions", f"{named}/versions/{sample.version}")
        yield from (f"{named}/file?path=SKILL.md", f"{named}/install", f"{named}/moderation", f"{named}/verify")
        yield from (f"{named}/scans", f"{named}/external-scans", f"{named}/repo-health", f"{named}/alike")
        yield f"{named}/provenance"
        versions = urlencode({"from": sample.version, "to": sample.version})
        yield from (f"{named}/versions/diff?{versions}", f"{named}/versions/compare?{versions}")


def admin_addresses(pages: int) -> Iterator[Address]:
    """Yield the lists of the admin: the first page and the last of so many, every order, every filter."""
    of_skills = ("visibility=visible", "verdict=held", "entries=aliases", "q=extract", "q=@amber")
    lists: dict[str, tuple[int, tuple[str, ...]]] = {
        "marketplace/skillentry": (7, of_skills),
        "marketplace/historyevent": (0, ("q=skill:extract",)),
        "submissions/submissionentry": (6, ("state=ON_HOLD", "q=https://git.demo.invalid/amber")),
        "submissions/heldsubmission": (0, ()),
        "kv/kventry": (4, ()),
    }
    for name, (columns, queries) in lists.items():
        place = f"/admin/{name}/"
        yield Address(ADMIN, place)
        if queries:
            # The others hold few rows.
            yield Address(ADMIN, f"{place}?p={pages}")
        yield from (Address(ADMIN, f"{place}?{query}") for query in queries)
        for column in range(1, columns + 1):
            yield from (Address(ADMIN, f"{place}?o={sign}{column}") for sign in ("", "-"))
