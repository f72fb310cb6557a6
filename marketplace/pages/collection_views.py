"""The pages of collections."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.shortcuts import render
from django.views.decorators.http import require_safe

from marketplace.addresses import collection_href, public_base
from marketplace.pages.collection import collection_context, collections_context
from marketplace.skill_sets.reading import find_collection, near_collections
from vskill.kv.errors import InvalidCursor
from vskill.visitors.reads import list_reads
from vskill.web.absent import Near, NotThere
from vskill.web.query_strings import unknown_parameter
from vskill.worker_context import require_worker_env

NO_COLLECTION = "There is no collection of this name."


@require_safe
async def collections(request: HttpRequest) -> HttpResponse:
    """Show the collections by their names."""
    if fault := unknown_parameter(request.GET, ("cursor",)):
        return render(request, "400.html", {"message": fault}, status=400)
    env, cursor = require_worker_env(), request.GET.get("cursor", "")
    try:
        return await list_reads.render(request, "marketplace/collections.html", collections_context, env, cursor)
    except InvalidCursor as error:
        return render(request, "400.html", {"message": str(error)}, status=400)


@require_safe
async def collection(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a collection: its skills in their order, what they touch together, and how it installs as one."""
    env = require_worker_env()
    if fault := unknown_parameter(request.GET, ()):
        return render(request, "400.html", {"message": fault}, status=400)
    base = public_base(request, env)

    def answer() -> HttpResponse:
        found = find_collection(env, slug)
        if found is None:
            near = near_collections(env, slug)
            raise NotThere(NO_COLLECTION, [Near(name, collection_href(name)) for name in near])
        if found.slug != slug:
            return HttpResponsePermanentRedirect(collection_href(found.slug))
        return render(request, "marketplace/collection.html", collection_context(env, found, base))

    return await list_reads.run(answer)
