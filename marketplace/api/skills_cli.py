"""The dialect of the skills client: ``skills find``."""

from __future__ import annotations

from django.http import HttpResponse

from marketplace.addresses import public_base
from marketplace.api.filters import OF_SEARCHES, filters_of
from marketplace.api.http import SAFE, ApiCall, api_view, json_response, requested_limit, takes_only
from marketplace.api.shapes import search_fields
from marketplace.skills.answers import search_answer
from marketplace.skills.handles import short_handle
from vskill.visitors.reads import list_reads


@api_view(*SAFE, reads=list_reads)
def find(call: ApiCall) -> HttpResponse:
    """Search for ``q``; ``source`` is a URL, so that the line which the client prints works with ``skills add``."""
    takes_only(call, "q", "limit", *OF_SEARCHES)
    base = public_base(call.request, call.env)
    filters, limit = filters_of(call), requested_limit(call, 20, 100)
    answer = search_answer(call.env, filters, limit=limit, columns=("slug", "publisher_handle", "downloads"))
    # The client takes no other handle as --owner.
    found = [
        {
            "id": f"{short_handle(hit.skill.publisher_handle)}/{hit.skill.slug}",
            "name": hit.skill.slug,
            "source": f"{base}/{short_handle(hit.skill.publisher_handle)}",
            "installs": hit.skill.downloads,
        }
        for hit in answer.hits
    ]
    return json_response({"skills": found, **search_fields(answer)})
