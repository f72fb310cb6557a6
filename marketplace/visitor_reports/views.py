"""The form on which a visitor reports a skill, and the page on which they see what became of it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from marketplace.addresses import skill_href
from marketplace.catalog import find_skill_sync
from marketplace.errors import SkillNotFound
from marketplace.models import SkillEntry
from marketplace.skills.near_names import near_slugs
from marketplace.skills.visibility import is_told
from marketplace.visitor_reports.reports import (
    LEAST_EVIDENCE,
    MOST_CONTACT,
    MOST_EVIDENCE,
    REASONS,
    ReportReason,
    TooManyReports,
    find_report,
    report,
)
from vskill.environments import WorkerEnv
from vskill.kv.threads import writers
from vskill.rate_limits.kinds import Kind, rated
from vskill.visitors.reads import page_reads
from vskill.web.absent import Near, NotThere
from vskill.worker_context import require_worker_env

_LONGEST_VERSION = 64


class ReportForm(forms.Form):
    """Ask why, for what can be looked at, and where an operator may ask back."""

    reason = forms.ChoiceField(
        choices=list(REASONS.items()), error_messages={"required": "Choose why.", "invalid_choice": "Choose why."}
    )
    evidence = forms.CharField(min_length=LEAST_EVIDENCE, max_length=MOST_EVIDENCE)
    contact = forms.CharField(required=False, max_length=MOST_CONTACT)
    version = forms.CharField(required=False, max_length=_LONGEST_VERSION)


@rated(Kind.SUBMISSIONS)
@require_http_methods(["GET", "HEAD", "POST"])
async def report_skill(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the form; a POST stores the report and leads to its page."""
    env = require_worker_env()
    skill = await page_reads.run(find_skill_sync, env, slug)
    if skill is None:
        raise await _not_there(env, slug)
    if request.method != "POST":
        version = request.GET.get("version", "")[:_LONGEST_VERSION]
        return _form(request, skill, ReportForm(initial={"version": version}))
    form = ReportForm(request.POST)
    if not form.is_valid():
        return _form(request, skill, form, status=400)
    given = form.cleaned_data
    told = {"reason": ReportReason(given["reason"]), "evidence": given["evidence"], "contact": given["contact"]}
    try:
        reference = await writers.run(report, env, skill.slug, given["version"], **told)
    except SkillNotFound as missing:
        raise await _not_there(env, slug) from missing
    except TooManyReports as refused:
        form.add_error(None, str(refused))
        response = _form(request, skill, form, status=429)
        response["Retry-After"] = "86400"
        return response
    return redirect("marketplace:report", reference=reference)


@require_safe
async def report_state(request: HttpRequest, reference: str) -> HttpResponse:
    """Show where a report stands to whoever has its reference; nothing that the visitor wrote is shown again."""
    found = await page_reads.run(find_report, require_worker_env(), reference)
    if found is None or not is_told(found.skill):
        raise NotThere("There is no report with this reference.")
    context = {"report": found, "reason": REASONS.get(found.reason, found.reason), "slug": found.skill.slug}
    response = render(request, "marketplace/report_state.html", context)
    response["Cache-Control"] = "no-store"
    response["X-Robots-Tag"] = "noindex"
    return response


async def _not_there(env: WorkerEnv, slug: str) -> NotThere:
    near = await page_reads.run(near_slugs, env, slug)
    return NotThere("There is no skill of this name to report.", [Near(name, skill_href(name)) for name in near])


def _form(request: HttpRequest, skill: SkillEntry, form: ReportForm, *, status: int = 200) -> HttpResponse:
    context: dict[str, Any] = {
        "form": form,
        "name": skill.display_name or skill.name,
        "href": skill_href(skill.slug),
        "here": skill_href(skill.slug, "report"),
        "least": LEAST_EVIDENCE,
        "most": MOST_EVIDENCE,
        "most_contact": MOST_CONTACT,
    }
    response = render(request, "marketplace/report.html", context, status=status)
    response["Cache-Control"] = "no-store"
    return response
