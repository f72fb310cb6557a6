"""What engines found about a submission, kept as entries ``scan:{submission}:{engine}`` as long as the submission."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from marketplace.coverage import add_up
from submissions.models import SUBMISSION_PREFIX, SubmissionEntry
from submissions.verification.engines.base import EngineResult, contract_in
from submissions.verification.findings import Finding, FindingKind, strongest_first
from vskill.environments import WorkerEnv
from vskill.kv.codec import prefix_end
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.outcomes import Status
from vskill.kv.threads import readers

STRUCTURE: Final = "structure"
_SIGNATURE: Final = "signature"
_KEYS_AT_ONCE: Final = 500


@dataclass(frozen=True)
class Evidence:
    """One engine's result for one content, as it was stored."""

    engine: str
    content_hash: str
    result: EngineResult


def _key(submission_id: str, engine: str) -> str:
    return f"scan:{submission_id}:{engine}"


def _evidence(engine: str, value: Any) -> Evidence | None:
    """Return stored evidence, or ``None`` for a value of another shape, which leads to a new scan."""
    try:
        return Evidence(engine, str(value["contentHash"]), EngineResult.from_json(value["result"]))
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


async def read_evidence(env: WorkerEnv, submission_id: str, engine: str) -> Evidence | None:
    """Return the stored result of one engine, or ``None``."""
    outcome = await KVNamespace(KVEntry, env).get(_key(submission_id, engine))
    return _evidence(engine, outcome.value) if outcome.found else None


async def write_evidence(env: WorkerEnv, submission_id: str, content_hash: str, result: EngineResult) -> None:
    """Store the ``result`` of one engine for the content ``content_hash``, in place of an earlier one."""
    value = {"contentHash": content_hash, "result": result.as_json()}
    await KVNamespace(KVEntry, env).put(_key(submission_id, result.engine), value)


async def write_signature(env: WorkerEnv, submission_id: str, value: Mapping[str, Any]) -> None:
    """Store the signature of what was checked, as long as the submission and beside its evidence."""
    await KVNamespace(KVEntry, env).put(_key(submission_id, _SIGNATURE), dict(value))


def read_signature_sync(env: WorkerEnv, submission_id: str) -> Any:
    """Return the stored signature of what was checked, ``None`` where there is none."""
    outcome = KVNamespace(KVEntry, env).get_sync(_key(submission_id, _SIGNATURE))
    return outcome.value if outcome.found else None


async def all_evidence(env: WorkerEnv, submission_id: str) -> list[Evidence]:
    """Return all evidence about a submission; see ``all_evidence_sync``."""
    return await readers.run(all_evidence_sync, env, submission_id)


def all_evidence_sync(env: WorkerEnv, submission_id: str) -> list[Evidence]:
    """Return all evidence about a submission, by engine; a value that is no evidence is left out.

    Raises ``EntryUnavailable`` where an entry cannot be read: findings must not look like no findings.
    """
    prefix = _key(submission_id, "")
    outcomes = KVNamespace(KVEntry, env).get_all_sync(prefix)
    for outcome in outcomes:
        if outcome.status in (Status.UNREADABLE, Status.TIMED_OUT):
            outcome.require()
    stored = [_evidence(outcome.key.removeprefix(prefix), outcome.value) for outcome in outcomes if outcome.found]
    return [evidence for evidence in stored if evidence is not None]


def orphan_evidence(env: WorkerEnv, prefix: str = "scan:") -> list[str]:
    """Return the keys of evidence about submissions that do not exist, of those that start with ``prefix``."""
    rows = KVEntry.objects.using(env.database).filter(namespace=env.name, key__gte=prefix)
    if (end := prefix_end(prefix)) is not None:
        rows = rows.filter(key__lt=end)
    keys = list(rows.order_by("key").values_list("key", flat=True))
    about = {key: f"{SUBMISSION_PREFIX}{key.split(':')[1]}" for key in keys if key.count(":") > 1}
    entries = SubmissionEntry.objects.using(env.database).filter(namespace=env.name)
    wanted = sorted(set(about.values()))
    known: set[str] = set()
    for start in range(0, len(wanted), _KEYS_AT_ONCE):
        chunk = wanted[start : start + _KEYS_AT_ONCE]
        known.update(entries.filter(key__in=chunk).values_list("key", flat=True))
    return [key for key, entry_key in about.items() if entry_key not in known]


def findings_of(evidence: list[Evidence]) -> tuple[Finding, ...]:
    """Return the findings of all engines, the most severe first."""
    return strongest_first(finding for one in evidence for finding in one.result.findings)


def shown_evidence(evidence: list[Evidence]) -> dict[str, Any]:
    """Return the findings of all engines as a page shows them, and what the engines have read together."""
    found = findings_of(evidence)
    coverage = add_up(
        {one.engine: one.result.status.value for one in evidence if one.engine != STRUCTURE},
        ((one.engine, one.file, one.why) for one in found if one.kind is FindingKind.COVERAGE),
    )
    return {"findings": [one for one in found if one.kind is not FindingKind.COVERAGE], "coverage": coverage}


def contract_of(evidence: Iterable[Evidence]) -> Mapping[str, Any] | None:
    """Return what the skill declares beside what it does, or ``None`` where no engine has said it."""
    return contract_in(one.result for one in evidence)
