"""Reviewers and operators as programs: their tokens, and what their calls are answered."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from submissions.api import described
from tests.submissions.api.test_described import check
from vskill.access_tokens.scopes import Scope
from vskill.access_tokens.tokens import make_token
from vskill.accounts.roles import Role
from vskill.environments import WorkerEnv
from vskill.models import RoleGrant

REVIEW: Final = "/api/v1/review"
OPERATE: Final = "/api/v1/operate"
CALLS: Final = [
    (method.upper(), path)
    for path, methods in described.OPERATIONS.items()
    if path.startswith((REVIEW, OPERATE))
    for method in methods
]


def token_of(env: WorkerEnv, role: Role | None, *scopes: Scope, name: str = "") -> str:
    """Return a token for ``scopes`` of an account with a role, which is called ``the-{role}`` by default."""
    people: Any = get_user_model()._default_manager
    user, _new = people.get_or_create(username=name or f"the-{role}")
    if role is not None:
        RoleGrant.objects.get_or_create(
            user=user,
            environment=env.name,
            defaults={"role": role, "granted_by": "root", "granted_at": timezone.now()},
        )
    return make_token(env, user, name="script", scopes={Scope.READ, *scopes})[1]


def call(token: str | None, method: str, path: str, body: Any = None, **headers: str) -> Any:
    """Return the answer to a call with a token, whose body is JSON; it is one that the OpenAPI document describes."""
    sent = {} if token is None else {"Authorization": f"Bearer {token}"}
    text = "" if body is None else json.dumps(body)
    answer = Client().generic(method, path, text, content_type="application/json", headers={**sent, **headers})
    check(_template(path), "get" if method == "HEAD" else method.lower(), answer, has_body=method != "HEAD")
    return answer


def _template(path: str) -> str:
    place = path.partition("?")[0]
    return next(one for _method, one in CALLS if re.fullmatch(re.sub(r"\\?\{\w+\\?\}", "[^/]+", re.escape(one)), place))
