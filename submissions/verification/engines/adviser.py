"""The adapter of an adviser: a language model behind any endpoint that speaks as OpenAI's does. Off by default.

It is shown the few spans that matter, as quoted data, and asked three times. Where all three call a skill harmful, that
is a finding, which holds it for a person; where they disagree, or there is no answer, the result is inconclusive.
Whatever it answers, it can only raise a verdict: it has no way to say that something is safe.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from submissions.source.fetching import source_policy
from submissions.verification.engines import adviser_child
from submissions.verification.engines.base import Engine, EngineResult, EngineStatus
from submissions.verification.errors import EngineUnavailable
from submissions.verification.findings import Finding, FindingKind, Severity
from vskill.environments import all_environments
from vskill.worker_context import get_worker_env

_SCRIPT: Final = Path(__file__).with_name("adviser_child.py")


class Adviser(Engine):
    """Ask a language model; without an endpoint and a model it is unavailable."""

    name = "adviser"
    adapter = 1
    network = True

    @property
    def version(self) -> str:
        """Return the model and a digest of endpoint, model and prompt; raises EngineUnavailable where none is set."""
        if not settings.ADVISER_URL or not settings.ADVISER_MODEL:
            raise EngineUnavailable("The engine adviser needs VSKILL_ADVISER_URL and VSKILL_ADVISER_MODEL.")
        said = "\0".join((settings.ADVISER_URL, settings.ADVISER_MODEL, adviser_child.PROMPT))
        return f"{settings.ADVISER_MODEL[:60]} {hashlib.sha256(said.encode()).hexdigest()[:12]}"

    def environment(self) -> Mapping[str, str]:
        """Return the endpoint, the model, the key and the way to it, which no command line shows."""
        return {
            "VSKILL_ADVISER_URL": settings.ADVISER_URL,
            "VSKILL_ADVISER_MODEL": settings.ADVISER_MODEL,
            "VSKILL_ADVISER_KEY": settings.ADVISER_KEY,
            "VSKILL_ADVISER_CACHE": str(settings.DATA_DIR / "adviser"),
            "VSKILL_ADVISER_PROXY": json.dumps(_way(settings.ADVISER_URL)),
        }

    def command(self, tree: Path) -> Sequence[str]:
        """Return the command line of the child script."""
        return [sys.executable, "-I", str(_SCRIPT), str(tree)]

    def parse(self, output: bytes) -> EngineResult:
        """Read the document of the child: one finding where all runs agree that the skill is harmful."""
        document = json.loads(output)
        try:
            spans, answers, error = document["spans"], document["answers"], str(document["error"])
            harmful = [one for one in answers if one["harmful"]]
            finding = _finding(spans[harmful[0]["span"]], str(harmful[0]["why"])) if harmful else None
        except (KeyError, TypeError, IndexError) as problem:
            raise ValueError(f"not a document of the adviser: {type(problem).__name__}") from problem
        if error:
            return self._result(EngineStatus.FAILED, f"The adviser {error}.")
        if spans and (len(answers) < adviser_child.RUNS or 0 < len(harmful) < len(answers)):
            return self._result(EngineStatus.FAILED, f"The adviser disagreed with itself in {len(answers)} runs.")
        return self._result(EngineStatus.COMPLETE, "", *([finding] if finding else []))

    def _result(self, status: EngineStatus, error: str, *findings: Finding) -> EngineResult:
        return EngineResult(self.name, self.version, status, findings=findings, error=error)


def _way(url: str) -> dict[str, Any]:
    """Return the proxy that the current environment has ``url`` asked through, and its file of authorities.

    Outside of any, as by a command that reads a folder, the first environment that has a proxy decides.
    """
    env = get_worker_env() or next((one for one in all_environments().values() if one.policy.source_proxy), None)
    if env is None:
        return {}
    policy = source_policy(env)
    proxy = policy.proxy_for_service(url)
    way = {"ca_file": str(policy.ca_file) if policy.ca_file is not None else ""}
    return way if proxy is None else {**way, **proxy.for_child()}


def _finding(span: Mapping[str, Any], why: str) -> Finding:
    return Finding(
        rule_id="adviser-harmful",
        severity=Severity.HIGH,
        kind=FindingKind.RISK,
        title="A language model calls this harmful",
        file=str(span["file"]),
        line=int(span["line"]),
        excerpt=str(span["text"]),
        why=why,
        advice="Read the place yourself: a model can be wrong.",
        engine=Adviser.name,
    )
