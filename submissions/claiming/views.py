"""The page on which a signed-in person claims publishers, has the proof looked for, and gives claims up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from marketplace.addresses import publisher_href
from marketplace.models import PublisherClaim
from marketplace.models.ownership import PROVEN
from marketplace.ownership.claims import (
    HOURS,
    PROOF_WORDS,
    ClaimRefused,
    Proof,
    begin,
    claims_of,
    end,
    may_check,
    prove,
)
from marketplace.ownership.handing_on import claims_offered_to, leave_claim, offer_claim, take_claim
from submissions.claiming.offers import (
    MOST_SHOWN,
    accept_offer,
    decline_offer,
    grouped,
    make_offer,
    offers_of,
    skills_of,
    withdraw_offer,
)
from submissions.claiming.proofs import FILE, find_code
from submissions.claiming.sign_ins import SIGN_IN_MINUTES, owners_signed_in_as
from submissions.claiming.whole import decide_all, offer_publisher
from submissions.source.errors import InvalidRepositoryURL, SourceError
from submissions.source.fetching import repository_url
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.kv.errors import EntryUnavailable
from vskill.kv.threads import writers
from vskill.processes.machine_faults import MachineFault
from vskill.rate_limits.kinds import Kind, rated
from vskill.token_views.pages import private_page, signed_in_person
from vskill.visitors.reads import ahead_of_reads, page_reads
from vskill.worker_context import require_worker_env

_LONGEST_ADDRESS = 1100
_NO_SUCH_CLAIM = "There is no such claim of yours: it may have lapsed. Nothing was changed."
_NOT_FOUND = (
    "The code is not there yet: there is no branch of that name, and the file does not hold it on the default branch. "
    "Push one of them, and check again."
)


@rated(Kind.SUBMISSIONS)
@require_http_methods(["GET", "HEAD", "POST"])
async def own_publishers(request: HttpRequest) -> HttpResponse:
    """Show the publishers of whoever is signed in; begin, check or give up a claim, or offer a skill, as was sent."""
    env = require_worker_env()
    user = await page_reads.run(signed_in_person, request)
    if user is None:
        return HttpResponseRedirect(f"{reverse('sign-in')}?next={reverse('submissions:own-publishers')}")
    if request.method != "POST":
        return await _page(request, env, user)
    # No name or address has a NUL, and PostgreSQL asks for none that has.
    sent = {name: value.replace("\0", "\N{REPLACEMENT CHARACTER}") for name, value in request.POST.dict().items()}
    try:
        for name, step in _STEPS.items():
            if name in sent:
                await step(env, user, sent[name])
                return redirect("submissions:own-publishers")
        if "account" in sent:
            await writers.run(offer_claim, env, user, sent.get("of_publisher", ""), sent["account"])
            return redirect("submissions:own-publishers")
        if "publisher" in sent:
            await offer_publisher(env, user, sent)
            return redirect("submissions:own-publishers")
        if "skill" in sent:
            await make_offer(env, user, sent)
            return redirect("submissions:own-publishers")
        await _begin(env, user, sent.get("repository_url", ""))
    except EntryUnavailable:
        raise
    except VskillError as error:
        later = isinstance(error, MachineFault) or (isinstance(error, SourceError) and error.transient)
        fields = ("repository_url", "skill", "receiver", "reason", "publisher", "of_publisher", "account")
        given = {name: sent.get(name, "")[:_LONGEST_ADDRESS] for name in fields}
        response = await _page(request, env, user, {"error": str(error), **given}, 503 if later else 422)
        if later:
            response["Retry-After"] = "10"
        return response
    return redirect("submissions:own-publishers")


async def _begin(env: WorkerEnv, user: Any, address: str) -> None:
    if len(address) > _LONGEST_ADDRESS:
        raise InvalidRepositoryURL("That is too long for the address of a repository. Nothing was begun.")
    await writers.run(begin, env, user, repository_url(env, address.strip()).url)


async def _check(env: WorkerEnv, user: Any, number: str) -> None:
    claim = await page_reads.run(_claim, env, user, number)
    if claim.state == PROVEN:
        return
    if not await writers.run(may_check, env, claim):
        raise ClaimRefused("This was looked for just now. Wait ten seconds, and check again.")
    with ahead_of_reads():
        seen = await find_code(env, claim)
    if seen is None:
        raise ClaimRefused(_NOT_FOUND)
    await writers.run(prove, env, claim, seen.proof, seen.evidence)


async def _by_sign_in(env: WorkerEnv, user: Any, publisher: str) -> None:
    if publisher not in await page_reads.run(owners_signed_in_as, user):
        raise ClaimRefused(
            f"A sign-in proves a claim for {SIGN_IN_MINUTES} minutes, and for the account of that name alone. "
            "Sign out, sign in again at its host, and come back. Nothing was changed."
        )
    # The address of no repository is needed; any of that owner says whose it is.
    claim = await writers.run(begin, env, user, f"https://{publisher}/-")
    await writers.run(prove, env, claim, Proof.SIGN_IN, f"signed in as {publisher}")


async def _give_up(env: WorkerEnv, user: Any, number: str) -> None:
    claim = await page_reads.run(_claim, env, user, number)
    await writers.run(end, env, claim, actor=user.get_username(), reason="given up by its owner")


async def _take(env: WorkerEnv, user: Any, number: str) -> None:
    await writers.run(take_claim, env, user, _number(number))


async def _leave(env: WorkerEnv, user: Any, number: str) -> None:
    await writers.run(leave_claim, env, user, _number(number))


def _number(written: str) -> int:
    return int(written) if written.isascii() and written.isdigit() and len(written) <= 18 else 0


def _claim(env: WorkerEnv, user: Any, number: str) -> PublisherClaim:
    found = claims_of(env, user.pk).filter(pk=_number(number)).first()
    if found is None:
        raise ClaimRefused(_NO_SUCH_CLAIM)
    return found


async def _page(
    request: HttpRequest, env: WorkerEnv, user: Any, more: dict[str, Any] | None = None, status: int = 200
) -> HttpResponse:
    def context() -> dict[str, Any]:
        claims = list(claims_of(env, user.pk))
        proven = [_shown(one) for one in claims if one.state == PROVEN]
        claimed = {one["claim"].publisher for one in proven}
        return {
            "proven": proven,
            "offered_claims": list(claims_offered_to(env, user.pk)),
            "waiting": [one for one in claims if one.state != PROVEN],
            **{name: grouped(found) for name, found in offers_of(env, user).items()},
            "most": MOST_SHOWN,
            "skills": skills_of(env, user),
            "withdraw": reverse("submissions:withdraw"),
            "signed_in_as": [one for one in owners_signed_in_as(user) if one not in claimed],
            "file": FILE,
            "hours": HOURS,
            "here": reverse("submissions:own-publishers"),
            **(more or {}),
        }

    found = await page_reads.run(context)
    return private_page(request, "submissions/own_publishers.html", found, status)


def _all(decision: str) -> Callable[[WorkerEnv, Any, str], Awaitable[None]]:
    async def step(env: WorkerEnv, user: Any, number: str) -> None:
        await decide_all(env, user, number, decision)

    return step


_STEPS = {
    "check": _check,
    "end": _give_up,
    "sign_in": _by_sign_in,
    "accept": accept_offer,
    "decline": decline_offer,
    "withdraw": withdraw_offer,
    "take": _take,
    "leave": _leave,
    "accept_all": _all("accept"),
    "decline_all": _all("decline"),
    "withdraw_all": _all("withdraw"),
}


def _shown(claim: PublisherClaim) -> dict[str, Any]:
    words = PROOF_WORDS.get(Proof(claim.proof), claim.proof)
    return {"claim": claim, "href": publisher_href(claim.handle), "proof": words}
