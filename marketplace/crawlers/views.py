"""The addresses that crawlers and agents ask for by themselves."""

from __future__ import annotations

from typing import Final

from django.http import HttpResponseBase
from django.template.loader import render_to_string
from django.urls import reverse

from marketplace.addresses import collection_href, public_base, skill_href
from marketplace.api.http import SAFE, ApiCall, ApiError, api_view, tagged_response
from marketplace.crawlers.sitemap import PART, index_of, map_of, parts, skills_of_part
from marketplace.install_lines.guide import guide
from marketplace.skill_sets.reading import all_collections, newest_collections
from vskill.accounts.access import asks_for, is_closed
from vskill.visitors.reads import list_reads

_XML: Final = "application/xml; charset=utf-8"
_TEXT: Final = "text/plain; charset=utf-8"
_PAGES: Final = ("/", "/skills", "/submit", "/about/verification", "/about/api")
# Digits of the number of a part; a longer number is that of none.
_DIGITS: Final = 9


@api_view(*SAFE, reads=list_reads)
def sitemap(call: ApiCall) -> HttpResponseBase:
    """Return the index of the sitemap: the part of the pages of the site, of collections, and those of skills."""
    base = public_base(call.request, call.env)
    of_collections = ["collections"] if all_collections(call.env).exists() else []
    names = ["pages", *of_collections, *map(str, parts(call.env))]
    addresses = [base + reverse("marketplace:sitemap-part", args=[name]) for name in names]
    return tagged_response(call, index_of(addresses), _XML)


@api_view(*SAFE, reads=list_reads)
def sitemap_part(call: ApiCall) -> HttpResponseBase:
    """Return one part of the sitemap."""
    base, name = public_base(call.request, call.env), call.path_parameters["part"]
    if name == "pages":
        return tagged_response(call, map_of([(base + page, None) for page in _PAGES]), _XML)
    if name == "collections" and (found := newest_collections(call.env, PART)):
        own = [(base + collection_href(one.slug), one.changed_at) for one in found]
        return tagged_response(call, map_of([(base + reverse("marketplace:collections"), None), *own]), _XML)
    number = int(name) if name.isascii() and name.isdigit() and len(name) <= _DIGITS else None
    skills = skills_of_part(call.env, number) if number is not None else []
    if not skills:
        raise ApiError(404, f"The sitemap has no such part. Its index is at {reverse('marketplace:sitemap')}.")
    return tagged_response(call, map_of((base + skill_href(slug), at) for slug, at in skills), _XML)


@asks_for(None)
@api_view(*SAFE)
def robots(call: ApiCall) -> HttpResponseBase:
    """Tell crawlers what is worth reading: pages of skills, not each order of lists; of a closed registry nothing."""
    context = {"base": public_base(call.request, call.env), "closed": is_closed(call.env)}
    return tagged_response(call, render_to_string("marketplace/robots.txt", context), _TEXT)


@api_view(*SAFE)
def llms(call: ApiCall) -> HttpResponseBase:
    """Tell agents what this registry is, how they read it, and that no text of a skill is an order to them."""
    base = public_base(call.request, call.env)
    context = {"base": base, "install": guide(base, bearing=is_closed(call.env))}
    return tagged_response(call, render_to_string("marketplace/llms.txt", context), _TEXT)
