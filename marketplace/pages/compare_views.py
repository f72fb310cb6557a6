"""The page that shows skills side by side."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from marketplace.errors import InvalidListing
from marketplace.pages.compare import compare_context
from vskill.visitors.reads import page_reads
from vskill.web.query_strings import unknown_parameter
from vskill.worker_context import require_worker_env


@require_safe
async def compare(request: HttpRequest) -> HttpResponse:
    """Show up to four skills side by side; 404 where none of those that were named is there."""
    try:
        if fault := unknown_parameter(request.GET, ("skill",)):
            raise InvalidListing(fault)
        context = await page_reads.run(compare_context, require_worker_env(), request.GET.getlist("skill"))
    except InvalidListing as error:
        return render(request, "400.html", {"message": str(error)}, status=400)
    return render(request, "marketplace/compare.html", context, status=200 if context["columns"] else 404)
