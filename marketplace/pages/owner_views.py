"""The addresses in which clients write a publisher and a skill, ``@owner/skill``; each leads to the page of it."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect, HttpResponseRedirect
from django.views.decorators.http import require_safe

from marketplace.addresses import present_page, publisher_href
from marketplace.catalog import find_skill_sync
from marketplace.pages.absence import absent_of_owner
from marketplace.skills.handles import is_named, present_handle, short_handle
from vskill.visitors.reads import page_reads
from vskill.worker_context import require_worker_env


def led_to_publisher(request: HttpRequest, handle: str, present: str) -> HttpResponse:
    """Return a redirect from another name of a publisher, ``handle``, to the page of its ``present`` one.

    It is permanent where both are names of one publisher. What was handed to another one may be handed back.
    """
    query = f"?{request.GET.urlencode()}" if request.GET else ""
    same = handle.removeprefix("@").lower() in (present, short_handle(present))
    redirect = HttpResponsePermanentRedirect if same else HttpResponseRedirect
    return redirect(publisher_href(present) + query)


@require_safe
async def owner(request: HttpRequest, handle: str) -> HttpResponse:
    """Lead from ``/@owner`` to the page of the publisher."""
    present = await page_reads.run(present_handle, require_worker_env(), handle)
    return led_to_publisher(request, handle, present)


@require_safe
async def owned_skill(request: HttpRequest, handle: str, slug: str) -> HttpResponse:
    """Lead from ``/@owner/skill`` to the page of the skill; 404 where it is of somebody else."""
    env = require_worker_env()

    def answer() -> HttpResponse:
        found = find_skill_sync(env, slug.lower())
        if found is None or not is_named(env, found, handle):
            raise absent_of_owner(env, handle, slug)
        return present_page(request, found.slug)

    return await page_reads.run(answer)
