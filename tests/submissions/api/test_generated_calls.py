"""Calls that a public tool makes up from the description of the API: each is answered as that says, and none fails."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from django.test import override_settings
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as hypothesis_settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from submissions.api import described
from tests.marketplace.factories import publish_example
from tests.submissions.uploads.uploading import token_for
from vskill.environments import WorkerEnv
from vskill.openapi import document
from vskill.rate_limits.kinds import Kind

METHODS: Final = ("get", "post", "put", "patch", "delete")
CALLS: Final = [
    (method, path)
    for path, told in document(*described.TABLES)["paths"].items()
    for method in METHODS
    if method in told
]


@cache
def schema() -> Any:
    """Return what the tool reads from the server, through its WSGI application."""
    return schemathesis.openapi.from_wsgi("/api/v1/openapi.json", get_wsgi_application())


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("method", "path"), CALLS)
def test_a_call_that_is_made_up_is_answered_as_the_document_says(
    env: WorkerEnv, tmp_path: Path, method: str, path: str
) -> None:
    publish_example(env, declared_version="1.0.0")
    # Without a token, what is done for somebody would be refused before anything of it is read.
    for_somebody = document(*described.TABLES)["paths"][path][method].get("security") is not None
    headers = {"Authorization": f"Bearer {token_for(env, 'ada')}"} if for_somebody else {}

    @given(schema()[path][method.upper()].as_strategy())
    @hypothesis_settings(
        max_examples=5,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def ask(case: Any) -> None:
        # What a registry holds, and what names a repository, decides about texts that a schema allows.
        case.validate_response(case.call(headers=headers), headers=headers, excluded_checks=[positive_data_acceptance])

    # No host outside is asked.
    policy = {"source_file_roots": [str(tmp_path)], "source_rewrites": [["https://", f"file://{tmp_path}/"]]}
    here = {"default": {"policy": policy, "hosts": ["localhost"]}}
    with override_settings(RATE_LIMITS=dict.fromkeys(Kind, ""), VSKILL_ENVIRONMENTS=here):
        ask()
