"""What a program asks about the person that it works for."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpResponse

from marketplace.api.http import SAFE, ApiCall, api_view, json_response
from marketplace.api.lookup import named_skill
from marketplace.stars import star, unstar
from vskill.access_tokens.scopes import Scope
from vskill.accounts.roles import Action, may
from vskill.environments import WorkerEnv
from vskill.rate_limits.kinds import Form
from vskill.web.bearer_tokens import lacks, token_of, unauthorised

_WITHOUT: Final = (
    "No token was sent. Make one under /account/tokens and send it as Authorization: Bearer, or run "
    "clawhub login --token TOKEN."
)


@api_view(*SAFE)
def whoami(call: ApiCall) -> HttpResponse:
    """Return whose token the request bears and what it is for, or 401 without one."""
    token = token_of(call.request)
    if token is None:
        return unauthorised(Form.TEXT, _WITHOUT)
    name = token.user.get_username()
    user = {
        "handle": name,
        "displayName": token.user.get_full_name() or name,
        "image": None,
        "role": _role(call.env, token.user),
    }
    about = {"name": token.name, "scopes": token.scopes.split(), "expiresAt": token.expires_at.isoformat()}
    answer = json_response({"user": user, "token": about})
    answer["Cache-Control"] = "no-store"
    return answer


@api_view("POST", "DELETE")
def stars(call: ApiCall) -> HttpResponse:
    """Give a skill the star of whoever the token belongs to, or take it back; both can be repeated."""
    token = token_of(call.request)
    if token is None:
        return unauthorised(Form.TEXT, f"A star is given by somebody. {_WITHOUT}")
    if (refusal := lacks(call.request, Scope.SUBMIT)) is not None:
        return refusal
    skill = named_skill(call)
    if call.request.method == "POST":
        return json_response({"ok": True, "starred": True, "alreadyStarred": not star(call.env, skill, token.user_id)})
    had = unstar(call.env, skill, token.user_id)
    return json_response({"ok": True, "unstarred": True, "alreadyUnstarred": not had})


def _role(env: WorkerEnv, user: Any) -> str:
    """Return the role of a user in the words of clawhub, which knows three."""
    if may(user, env, Action.ADMINISTER):
        return "admin"
    return "moderator" if may(user, env, Action.REVIEW) else "user"
