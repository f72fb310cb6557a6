"""The dialect of the skills client: ``skills find``."""

from __future__ import annotations

from django.http import HttpResponse

from marketplace.addresses import public_base
from marketplace.api.http import SAFE, Asked, api_view, json_answer, limit_of, parameter
from marketplace.skills.search import search_sync


@api_view(*SAFE)
def find(asked: Asked) -> HttpResponse:
    """Search; ``source`` is an address, so that the line that the client prints can be given to ``skills add``."""
    base = public_base(asked.request, asked.env)
    hits = search_sync(
        asked.env,
        parameter(asked, "q"),
        limit=limit_of(asked, 20, 100),
        publisher_handle=parameter(asked, "owner").lower(),
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
    return json_answer({"skills": found})
