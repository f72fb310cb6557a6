"""The system check of the git host whose accounts the identity provider has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register

from submissions.claiming.sign_ins import git_host, problems_of


@register(Tags.compatibility)
def check_git_host(app_configs: Sequence[Any] | None, **_kwargs: Any) -> list[CheckMessage]:
    """Refuse a git host by which people could claim what is not theirs."""
    found = git_host()
    return [Error(problem, hint=hint, id="submissions.E012") for problem, hint in (problems_of(found) if found else ())]
