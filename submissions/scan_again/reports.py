"""The report of a scan as ``clawhub scan`` downloads it: an archive with the files that the client's documents name."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from marketplace.api.trust import dialects, evidence_of, milliseconds, said_of
from marketplace.external_scans import external_scans_sync
from marketplace.models import SkillVersion
from marketplace.skills.newest_scan import newest_scan
from submissions.states import STATES
from submissions.store.evidence import all_evidence_sync, findings_of
from submissions.store.records import Submission
from vskill.environments import WorkerEnv
from vskill.hidden_characters import visible
from vskill.kv.clock import parse_isoformat

# The same report is the same bytes, whenever it is asked for; a zip holds no earlier time.
_TIME: Final = (1980, 1, 1, 0, 0, 0)
_README: Final = """# Scan report

* Skill: {slug}
* Version: {version}
* Verdict: {verdict}
* Summary: {summary}
* Engines: {engines}
* Findings: {findings}

manifest.json says what was scanned and when, clawscan.json the verdict, static-analysis.json each finding with its
file and line, and external-scans.json what scanners outside the registry said. No engine runs a skill, and no known
pattern does not mean that a skill is safe.
"""


@dataclass(frozen=True)
class Report:
    """What one scan of one version found, in the fields of clawhub.

    ``verdict`` is in its words, ``status`` in ours. ``times`` are when it was asked for and when it was done, in
    milliseconds. ``source_kind`` is ``upload`` for what is not published, and ``external`` what scanners outside said.
    """

    slug: str
    name: str
    version: str
    scan_id: str
    verdict: str
    status: str
    summary: str
    engines: Sequence[str]
    findings: Sequence[Mapping[str, Any]]
    times: tuple[int, int]
    source_kind: str = "published"
    external: Sequence[Mapping[str, Any]] = ()

    @property
    def artifact(self) -> dict[str, str]:
        """Return what was scanned."""
        return {"slug": self.slug, "displayName": self.name, "version": self.version}

    @property
    def by_part(self) -> dict[str, Any]:
        """Return what was found, in the places where the client looks for it."""
        return {
            "clawscan": {"verdict": self.verdict, "summary": self.summary},
            "staticAnalysis": {
                "status": self.status,
                "reasonCodes": sorted({str(one["code"]) for one in self.findings} - {""}),
                "summary": f"By {', '.join(self.engines)}." if self.engines else "Not scanned.",
                "findings": [dict(one) for one in self.findings],
            },
        }

    def as_zip(self) -> bytes:
        """Return the report as a zip archive of JSON files and a text."""
        asked, done = self.times
        manifest = {
            "scanId": self.scan_id,
            "sourceKind": self.source_kind,
            "update": False,
            "status": "succeeded" if self.engines else "failed",
            "artifact": self.artifact,
            "createdAt": asked,
            "updatedAt": max(asked, done),
            "completedAt": done,
        }
        parts = self.by_part
        said = _README.format(
            slug=self.slug,
            version=self.version,
            verdict=self.verdict,
            summary=visible(self.summary) or "-",
            engines=", ".join(self.engines) or "none",
            findings=len(self.findings),
        )
        return _archive(
            {
                "README.md": said.encode(),
                "clawscan.json": _json(parts["clawscan"]),
                "external-scans.json": _json(list(self.external)),
                "manifest.json": _json(manifest),
                "static-analysis.json": _json(parts["staticAnalysis"]),
            }
        )


def report_of_version(env: WorkerEnv, version: SkillVersion, scan_id: str = "", asked: int = 0) -> Report:
    """Return the report of the newest scan of a published version; ``scan_id`` names the scan that was ``asked`` for.

    What scanners outside said is read on the calling thread.
    """
    newest, skill = newest_scan(version), version.skill
    done = milliseconds(newest.scanned_at)
    return Report(
        slug=skill.slug,
        name=skill.display_name or skill.name,
        version=version.version,
        scan_id=scan_id or version.submission_id,
        verdict=said_of(version).security,
        status=newest.verdict,
        summary=newest.summary or version.verdict_summary,
        engines=newest.named_engines,
        findings=evidence_of(newest.findings),
        times=(asked or done, done),
        external=[
            {"provider": one.provider, "state": str(one.state), "findings": list(one.findings), "error": one.error}
            for one in external_scans_sync(env, version.content_hash)
        ],
    )


def report_of_submission(env: WorkerEnv, submission: Submission, version: str) -> Report:
    """Return the report of a submission that has come to its end or is held; read on the calling thread.

    ``version`` is the one that its uploader chose. Raises ``EntryUnavailable`` where a finding cannot be read.
    """
    evidence = all_evidence_sync(env, submission.id)
    verdict, state = submission.text("verdict"), STATES[submission.state]
    return Report(
        slug=submission.text("plannedSlug") or submission.text("skillName"),
        name=submission.text("skillName"),
        version=version,
        scan_id=submission.id,
        verdict=dialects(verdict).security,
        status=verdict,
        summary=". ".join(part for part in (state.label, submission.text("reason")) if part),
        engines=[f"{one.result.engine} {one.result.engine_version}".strip() for one in evidence],
        findings=evidence_of(one.as_json() for one in findings_of(evidence)),
        times=(_moment(submission, "createdAt"), _moment(submission, "updatedAt")),
        source_kind="upload",
    )


def _moment(submission: Submission, name: str) -> int:
    return milliseconds(parse_isoformat(submission.text(name)))


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=2).encode() + b"\n"


def _archive(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, _TIME), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()
