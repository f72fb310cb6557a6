"""The pages that compare: skills side by side, and two versions of one skill."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from marketplace.addresses import present_page
from marketplace.errors import InvalidListing
from marketplace.pages.compare import compare_context
from marketplace.pages.version_compare import version_compare_context
from vskill.visitors.reads import page_reads
from vskill.web.query_strings import takes_several, unknown_parameter
from vskill.worker_context import require_worker_env

# One character more than a number of a version has, so that a longer text is none.
_LONGEST = 65


@require_safe
@takes_several("skill")
async def compare(request: HttpRequest) -> HttpResponse:
    """Show up to four skills side by side; 404 where none of those that were named is there."""
    try:
        if fault := unknown_parameter(request.GET, ("skill",)):
            raise InvalidListing(fault)
        env, names = require_worker_env(), request.GET.getlist("skill")

        def answer() -> HttpResponse:
            context = compare_context(env, names)
            return render(request, "marketplace/compare.html", context, status=200 if context["columns"] else 404)

        return await page_reads.run(answer)
    except InvalidListing as error:
        return render(request, "400.html", {"message": str(error)}, status=400)


@require_safe
async def version_changes(request: HttpRequest, slug: str) -> HttpResponse:
    """Show what differs between two versions of a skill: what they can touch, their verdicts and their lines."""
    if fault := unknown_parameter(request.GET, ("from", "to")):
        return render(request, "400.html", {"message": fault}, status=400)
    before, after = (request.GET.get(name, "").strip()[:_LONGEST] for name in ("from", "to"))
    env = require_worker_env()

    def answer() -> HttpResponse:
        context = version_compare_context(env, slug, before, after)
        if isinstance(context, str):
            return present_page(request, context, "compare")
        return render(request, "marketplace/version_changes.html", context)

    return await page_reads.run(answer)
