"""The page on which whoever is signed in withdraws a skill of a publisher of theirs, or a version, and undoes it."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from marketplace.addresses import skill_href
from marketplace.catalog import find_skill_sync
from marketplace.models import SkillEntry, SkillVersion
from marketplace.records import Visibility
from marketplace.skills.visibility import light_versions
from marketplace.skills.withdrawal import withdrawn, withheld
from submissions.uploads.acting import Acting, by_session, may_change
from submissions.uploads.errors import UploadRefused
from submissions.uploads.withdraw import bring_back, may_bring_back, withdraw
from vskill.environments import WorkerEnv
from vskill.kv.threads import writers
from vskill.rate_limits.kinds import Kind, rated
from vskill.token_views.pages import private_page, signed_in_person
from vskill.visitors.reads import page_reads
from vskill.worker_context import require_worker_env

MOST_VERSIONS: Final = 50
_LONGEST_SLUG: Final = 200
_NOT_YOURS: Final = (
    "There is no skill of this name that you could withdraw: whoever uploads it or has claimed its publisher may. "
    "Nothing was changed."
)


@rated(Kind.SUBMISSIONS)
@require_http_methods(["GET", "HEAD", "POST"])
async def withdraw_skill(request: HttpRequest) -> HttpResponse:
    """Show a skill of a publisher of whoever is signed in with its versions; withdraw or bring back what was sent."""
    env = require_worker_env()
    user = await page_reads.run(signed_in_person, request)
    values = request.POST if request.method == "POST" else request.GET
    slug = values.get("skill", "").replace("\0", "").strip().lower()[:_LONGEST_SLUG]
    here = reverse("submissions:withdraw")
    if user is None:
        return HttpResponseRedirect(f"{reverse('sign-in')}?next={here}")
    if request.method != "POST":
        return await _page(request, env, user, slug)
    try:
        await writers.run(_change, env, user, slug, request.POST.dict())
    except UploadRefused as refused:
        return await _page(request, env, user, slug, str(refused), refused.status)
    return redirect(f"{here}?skill={slug}")


def _change(env: WorkerEnv, user: Any, slug: str, given: dict[str, str]) -> None:
    acting = by_session(env, user)
    skill = _own(env, acting, slug)
    if skill is None:
        raise UploadRefused(404, _NOT_YOURS)
    reason = given.get("reason", "")
    for name, change in (("withdraw", withdraw), ("bring_back", bring_back)):
        if name in given:
            # The value is the number of a version, empty for the whole skill.
            change(env, acting, skill.slug, given[name].replace("\0", ""), reason=reason)
            return
    raise UploadRefused(400, "Nothing was said to be withdrawn or brought back. Nothing was changed.")


def _own(env: WorkerEnv, acting: Acting, slug: str) -> SkillEntry | None:
    skill = find_skill_sync(env, slug, every=True) if slug else None
    # Whether there is such a skill is said to its publisher alone: it may be shown to few.
    return skill if skill is not None and may_change(env, acting, skill) else None


async def _page(
    request: HttpRequest, env: WorkerEnv, user: Any, slug: str, error: str = "", status: int = 200
) -> HttpResponse:
    found = await page_reads.run(_context, env, user, slug)
    if found["skill"] is None and slug and not error:
        error, status = _NOT_YOURS, 404
    context = {
        **found,
        "slug": slug,
        "error": error,
        "here": reverse("submissions:withdraw"),
        "publishers": reverse("submissions:own-publishers"),
    }
    return private_page(request, "submissions/withdraw.html", context, status)


def _context(env: WorkerEnv, user: Any, slug: str) -> dict[str, Any]:
    acting = by_session(env, user)
    skill = _own(env, acting, slug)
    if skill is None:
        return {"skill": None}
    rows = light_versions(SkillVersion.objects.using(env.database).filter(namespace=env.name, skill=skill))
    return {
        "skill": skill,
        "href": skill_href(skill.slug),
        "withheld": withheld(skill),
        "quarantined": skill.standing == Visibility.QUARANTINED,
        "can_return": bool(withheld(skill)) and may_bring_back(env, acting, skill),
        "versions": [_of_version(env, acting, skill, one) for one in rows.order_by("-ordinal")[:MOST_VERSIONS]],
    }


def _of_version(env: WorkerEnv, acting: Acting, skill: SkillEntry, version: SkillVersion) -> dict[str, Any]:
    yanked = version.yanked_at is not None
    return {
        "version": version.version,
        "published_at": version.created_at,
        "said": withdrawn(version),
        "yanked": yanked,
        "can_return": yanked and may_bring_back(env, acting, skill, version.version),
    }
