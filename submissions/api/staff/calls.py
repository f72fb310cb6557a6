"""What the calls of reviewers and operators share: who may send them, their bodies, and one form of their errors."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from marketplace.errors import SkillNotFound
from marketplace.skills.blocklist import InvalidBlock
from marketplace.skills.moderation import ReasonMissing
from submissions.api.answers import (
    BadRequest,
    body_object,
    error_answer,
    errors_answered,
    limit_of,
    not_allowed,
    takes_only,
)
from submissions.operations import NeverScanned, NewerSubmission
from submissions.review.undo import CannotUndo
from submissions.states import IllegalTransition
from submissions.store.records import SubmissionNotFound
from vskill.access_tokens.models import AccessToken
from vskill.access_tokens.needed_scopes import needs
from vskill.access_tokens.scopes import Scope
from vskill.accounts.roles import Action, Role, may
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.hidden_characters import reveal_hidden, visible
from vskill.kv.codec import is_storable
from vskill.kv.errors import InvalidCursor, InvalidKey, VersionConflict
from vskill.kv.keyset import Row, binding_of, keyset_page
from vskill.kv.threads import writers
from vskill.rate_limits.kinds import Form, Kind, rated
from vskill.visitors.reads import list_reads
from vskill.web.bearer_tokens import lacks, token_of, unauthorised
from vskill.web.refusals import for_programs
from vskill.worker_context import require_worker_env

logger = logging.getLogger(__name__)

NOTHING_DONE: Final = "Nothing was done."
LONGEST_REASON: Final = 1000
LONGEST_TEXT: Final = 1024
DEFAULT_PAGE: Final = 25
MOST_ON_PAGE: Final = 100
# Digits of the number that says which version of something was looked at.
SEEN_DIGITS: Final = 18
OF_LISTS: Final = ("cursor", "limit")
_ROLES: Final = {Scope.REVIEW: (Action.REVIEW, Role.REVIEWER), Scope.OPERATE: (Action.OPERATE, Role.OPERATOR)}
_STATUSES: Final[tuple[tuple[type[VskillError], int], ...]] = (
    (BadRequest, 400),
    (InvalidCursor, 400),
    (InvalidKey, 400),
    (InvalidBlock, 400),
    (ReasonMissing, 400),
    (SubmissionNotFound, 404),
    (SkillNotFound, 404),
    (VersionConflict, 409),
    (IllegalTransition, 409),
    (NeverScanned, 409),
    (NewerSubmission, 409),
    (CannotUndo, 409),
)


class Refused(VskillError):
    """A call that is refused with a status of its own; ``more`` stands in its answer beside the message."""

    code = "refused"

    def __init__(self, status: int, said: str, message: str, **more: Any) -> None:
        """Keep what is answered; ``said`` is the code of the error."""
        super().__init__(message)
        self.status = status
        self.said = said
        self.more = more


@dataclass(frozen=True)
class StaffCall:
    """A call of somebody whose token and role permit it, with the parts of its path and the object in its body."""

    request: HttpRequest
    env: WorkerEnv
    token: AccessToken
    parts: Mapping[str, str]
    body: Mapping[str, Any] = field(default_factory=dict)

    @property
    def actor(self) -> str:
        """Return the name that goes into the history, as it does from the admin."""
        return self.token.user.get_username()

    def needs(self, *permissions: str, scope: Scope | None = None) -> None:
        """Raise ``Refused`` unless the account has one of the ``permissions`` of the admin, and the token ``scope``."""
        if scope is not None and not self.token.allows(scope):
            raise Refused(
                403, "insufficient_scope", f"This needs a token that was made for {scope} too. {NOTHING_DONE}"
            )
        if not any(self.token.user.has_perm(one) for one in permissions):
            message = f"The account {self.actor} lacks the permission that this needs. {NOTHING_DONE}"
            raise Refused(403, "forbidden", message)

    def takes_only(self, *names: str) -> None:
        """Raise ``BadRequest`` for a field of the body that is not among ``names``: it would be ignored."""
        for name in self.body:
            if name not in names:
                raise BadRequest(
                    f"There is no field {visible(name, 40)!r} here. There are: {', '.join(names)}. {NOTHING_DONE}"
                )

    def queries_only(self, *names: str) -> None:
        """Raise ``BadRequest`` for a parameter of the query that is not among ``names``."""
        takes_only(self.request, *names)

    def text(self, name: str, *, longest: int = LONGEST_TEXT) -> str:
        """Return a text of the body, '' where it is missing; raises ``BadRequest``."""
        value = self.body.get(name)
        if value is None:
            return ""
        if not isinstance(value, str) or len(value) > longest or not is_storable(value):
            raise BadRequest(f"'{name}' is a text of at most {longest} characters. {NOTHING_DONE}")
        return value.strip()

    def one_of(self, name: str, choices: Mapping[str, Any]) -> Any:
        """Return what the body chooses of ``choices`` under ``name``; raises ``BadRequest``."""
        chosen = self.body.get(name)
        if not isinstance(chosen, str) or chosen not in choices:
            raise BadRequest(f"'{name}' is one of: {', '.join(choices)}. {NOTHING_DONE}")
        return choices[chosen]

    def reason(self) -> str:
        """Return why the call is made, which goes into the history; raises ``BadRequest`` where it does not say."""
        found = reveal_hidden(self.text("reason", longest=LONGEST_REASON))
        if not found:
            raise BadRequest(f"'reason' is missing: it is kept in the history. {NOTHING_DONE}")
        return found

    def seen(self) -> int:
        """Return which version of its subject the caller looked at; raises ``BadRequest`` where it does not say."""
        value = self.body.get("seen")
        if type(value) is not int or not 0 < value < 10**SEEN_DIGITS:
            raise BadRequest(f"'seen' is the number under that name in what was read. {NOTHING_DONE}")
        return value


Handler = Callable[[StaffCall], Mapping[str, Any]]


def staff_view(scope: Scope, **handlers: Handler) -> Callable[..., Any]:
    """Return the view of an address for people with a token for ``scope`` and the role that belongs to it.

    ``handlers`` answer GET and POST, each on a thread of the database, with what becomes JSON or with an error. Only a
    token counts and never a session, so that no page of another site can send anything, and no cache keeps an answer.
    """
    methods = [one for name in handlers for one in ((name, "HEAD") if name == "GET" else (name,))]

    # csrf_exempt: it takes a token alone, which no page of another site has.
    @rated(Kind.READS, Form.JSON)
    @needs(scope)
    @csrf_exempt
    async def answer(request: HttpRequest, **parts: str) -> HttpResponseBase:
        if request.method == "OPTIONS":
            # No page of another origin reads what is answered here.
            return HttpResponse(status=204, headers={"Allow": ", ".join((*methods, "OPTIONS"))})
        if request.method not in methods:
            return _private(not_allowed(request, ", ".join(methods)))
        token = token_of(request)
        if token is None:
            return _private(unauthorised(Form.JSON, f"This needs a token for {scope}. Make one at /account/tokens."))
        if (beyond := lacks(request, scope)) is not None:
            return _private(beyond)
        handler = handlers["GET" if request.method == "HEAD" else str(request.method)]
        return _private(await _answered(request, handler, scope, token, parts))

    return answer


@errors_answered
async def _answered(
    request: HttpRequest, handler: Handler, scope: Scope, token: AccessToken, parts: Mapping[str, str]
) -> HttpResponse:
    body = body_object(request, kept=NOTHING_DONE) if request.method == "POST" else {}
    call = StaffCall(request, require_worker_env(), token, parts, body)
    if request.method == "POST":
        return await writers.run(_run, handler, scope, call)
    return await list_reads.run(_run, handler, scope, call)


def _run(handler: Handler, scope: Scope, call: StaffCall) -> HttpResponse:
    action, role = _ROLES[scope]
    try:
        if not may(call.token.user, call.env, action):
            message = f"This needs the role {role}, which {call.actor} has not in this registry. {NOTHING_DONE}"
            raise Refused(403, "forbidden", message)
        return JsonResponse(handler(call))
    except Refused as refused:
        return for_programs(Form.JSON, refused.status, refused.said, str(refused), **refused.more)
    except tuple(kind for kind, _status in _STATUSES) as error:
        status = next(status for kind, status in _STATUSES if isinstance(error, kind))
        return error_answer(error, status)


def _private(answer: HttpResponse) -> HttpResponse:
    answer["Cache-Control"] = "no-store"
    # What the middleware says of refusals everywhere is for readers of what is public.
    del answer["Access-Control-Allow-Origin"]
    return answer


def page_of(
    call: StaffCall, rows: QuerySet[Row], order: tuple[str, ...], *binding: object
) -> tuple[list[Row], str | None]:
    """Return the page of ``rows`` that a call asks for, and the cursor of the next; raises ``BadRequest``.

    ``order`` is that of ``keyset_page``, and ``binding`` what tells the list from others of this environment.
    """
    cursor, bound = call.request.GET.get("cursor", ""), binding_of(call.env.name, *binding)
    limit = limit_of(call.request, DEFAULT_PAGE, MOST_ON_PAGE)
    return keyset_page(rows, order, binding=bound, cursor=cursor, limit=limit)
