"""The dialect of the skills client: ``skills find``."""

from __future__ import annotations

from django.http import HttpResponse

from marketplace.addresses import public_base
from marketplace.api.http import SAFE, ApiCall, api_view, json_response, parameter, requested_limit, takes_only
from marketplace.skills.answers import search_sync
from vskill.visitors.reads import list_reads


@api_view(*SAFE, reads=list_reads)
def find(call: ApiCall) -> HttpResponse:
    """Search for ``q``; ``source`` is a URL, so that the line which the client prints works with ``skills add``."""
    takes_only(call, "q", "limit", "owner")
    base = public_base(call.request, call.env)
    hits = search_sync(
        call.env,
        parameter(call, "q"),
        limit=requested_limit(call, 20, 100),
        publisher_handle=parameter(call, "owner").lower(),
    )
    found = [
        {
            "id": f"{hit.skill.publisher_handle}/{hit.skill.slug}",
            "name": hit.skill.slug,
            "source": f"{base}/{hit.skill.publisher_handle}",
            "installs": hit.skill.downloads,
        }
        for hit in hits
    ]
    return json_response({"skills": found})
