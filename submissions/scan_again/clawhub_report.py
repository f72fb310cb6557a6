"""``clawhub scan download``: the stored report of a version, also of an upload that was not published."""

from __future__ import annotations

from typing import Final

from django.http import HttpResponse
from django.utils.http import content_disposition_header

from marketplace.api.http import SAFE, ApiCall, ApiError, api_view, parameter
from marketplace.api.lookup import exact_version, visible_skill
from marketplace.catalog import find_skill_sync
from marketplace.models import SkillVersion
from marketplace.skills.handles import is_named
from submissions.models import SubmissionEntry
from submissions.presentation import submission_path
from submissions.scan_again.reports import Report, report_of_submission, report_of_version
from submissions.states import STATES, Group
from submissions.store.queries import read_submission
from submissions.store.records import Submission, SubmissionNotFound
from submissions.uploads.acting import by_token, may_change
from submissions.uploads.errors import UploadRefused
from submissions.uploads.owners import Wish, address_for
from submissions.uploads.stored import VERSION_OF_UPLOAD
from vskill.access_tokens.models import AccessToken
from vskill.access_tokens.scopes import Scope
from vskill.environments import WorkerEnv
from vskill.web.bearer_tokens import token_of

# Of one skill, the newest: a version that was refused is uploaded again a few times at most.
_MOST_UPLOADS: Final = 50


@api_view(*SAFE)
def stored_report(call: ApiCall) -> HttpResponse:
    """Return the report of ``version``; its uploader, and operators, also get that of one that is not offered."""
    slug, owner, number = call.path_parameters["slug"], parameter(call, "ownerHandle"), parameter(call, "version")
    if parameter(call, "kind") not in ("", "skill"):
        raise ApiError(404, "This registry has skills and no plugins of other kinds.")
    if not number:
        raise ApiError(400, "The report is that of one version: name it with --version.")
    token = token_of(call.request)
    if token is not None and (report := _own_report(call.env, token, slug, owner, number)) is not None:
        return report_answer(report)
    skill = visible_skill(call.env, slug, owner=owner)
    return report_answer(report_of_version(call.env, exact_version(call.env, skill, number)))


def report_answer(report: Report) -> HttpResponse:
    """Return the archive of a report, which no cache may keep: the next scan replaces it."""
    answer = HttpResponse(report.as_zip(), content_type="application/zip")
    answer["Content-Disposition"] = content_disposition_header(
        as_attachment=True, filename=f"scan-{report.slug}-{report.version}.zip"
    )
    answer["Cache-Control"] = "no-store"
    return answer


def _own_report(env: WorkerEnv, token: AccessToken, slug: str, owner: str, number: str) -> Report | None:
    """Return the report of a version for who may speak for its skill, ``None`` for all others.

    It may be withheld, or an upload that came to nothing. Raises ``ApiError`` for one that is still being checked.
    """
    skill = find_skill_sync(env, slug.lower(), every=True)
    if skill is not None:
        if not may_change(env, by_token(env, token), skill) or (owner and not is_named(env, skill, owner)):
            return None
        rows = SkillVersion.objects.using(env.database).filter(namespace=env.name, skill=skill, version=number)
        if (found := rows.select_related("skill").first()) is not None:
            return report_of_version(env, found)
    address = _address(env, token, Wish(slug, number, owner)) if skill is None else str(skill.repo_url)
    submission = _upload(env, address, number) if address else None
    if submission is None:
        return None
    if STATES[submission.state].group is Group.ACTIVE:
        page = f"{env.public_url}{submission_path(submission.id)}"
        raise ApiError(409, f"{slug} {number} is still being checked, so there is no report yet. How far it is: {page}")
    return report_of_submission(env, submission, number)


def _address(env: WorkerEnv, token: AccessToken, wish: Wish) -> str:
    """Return the address under which the owner of ``token`` uploads a skill; empty where it may not."""
    if not token.allows(Scope.PUBLISH):
        return ""
    try:
        return address_for(env, token.user, wish)
    except UploadRefused:
        return ""


def _upload(env: WorkerEnv, address: str, number: str) -> Submission | None:
    """Return the newest submission of a version that was uploaded under an address."""
    rows = SubmissionEntry.objects.using(env.database).live().filter(namespace=env.name, repo_url=address)
    for row in rows.order_by("-submitted_at")[:_MOST_UPLOADS]:
        try:
            submission = read_submission(env, row.submission_id)
        except SubmissionNotFound:
            continue
        if submission.text(VERSION_OF_UPLOAD) == number:
            return submission
    return None
