"""What scanners outside this registry said of a content: the value of its entries, which pages and the API read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from vskill.environments import WorkerEnv
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace

EXTERNAL_SCAN_PREFIX: Final = "external-scan:"
KEPT_FOR: Final = timedelta(days=365)


class ScanState(StrEnum):
    """How far a scan by an outside scanner is.

    ``PENDING``: asked for. ``RUNNING``: the scanner has begun. ``COMPLETED``: it answered. ``FAILED``: it could not
    scan. ``TIMED_OUT``: it was not heard of for too long; what it sends later is refused.
    """

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"


@dataclass(frozen=True, slots=True)
class ExternalScan:
    """One scan of one content by one scanner; a newer one of both replaces it.

    ``id`` is what the scanner refers to. ``slug`` and ``version`` are those that the content was scanned for.
    ``requested_by`` is an operator, or what asked by itself. ``sent_at`` is empty until the scanner has taken it.
    ``findings`` are the JSON of findings, ``error`` a sentence for FAILED and TIMED_OUT. Times are ISO texts in UTC.
    """

    id: str
    provider: str
    content_hash: str
    slug: str = ""
    version: str = ""
    state: str = ScanState.PENDING
    requested_at: str = ""
    requested_by: str = ""
    sent_at: str = ""
    started_at: str = ""
    finished_at: str = ""
    engine_version: str = ""
    findings: tuple[dict[str, Any], ...] = ()
    error: str = ""

    def to_value(self) -> dict[str, Any]:
        """Return the value of the entry; ``from_value`` reads it back."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {**values, "state": str(self.state), "findings": list(self.findings)}

    @classmethod
    def from_value(cls, value: Any) -> ExternalScan | None:
        """Return the scan in a decoded value, or ``None`` where the value is none."""
        if not isinstance(value, dict) or value.get("state") not in set(ScanState):
            return None
        texts = {
            one.name: held
            for one in fields(cls)
            if one.name not in ("findings", "state") and isinstance(held := value.get(one.name), str)
        }
        if not all(texts.get(name) for name in ("id", "provider", "content_hash")):
            return None
        found = value.get("findings")
        findings = tuple(item for item in found if isinstance(item, dict)) if isinstance(found, list) else ()
        return cls(state=ScanState(value["state"]), findings=findings, **texts)


def external_scan_key(content_hash: str, provider: str) -> str:
    """Return the key of the newest scan of a content by a scanner."""
    return f"{EXTERNAL_SCAN_PREFIX}{content_hash}:{provider}"


def external_scans_sync(env: WorkerEnv, content_hash: str) -> Sequence[ExternalScan]:
    """Return the newest scan of a content by each scanner, in the order of their names; damaged ones are left out."""
    if not content_hash:
        return []
    outcomes = KVNamespace(KVEntry, env).get_all_sync(external_scan_key(content_hash, ""))
    scans = (ExternalScan.from_value(one.value) for one in outcomes if one.found)
    return [one for one in scans if one is not None]
