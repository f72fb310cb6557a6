"""Publish a package that passed, in one transaction with the submission's last step."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from marketplace.catalog import Publication, PublishedFile, prepare_publication, publish_skill
from marketplace.errors import PublicationBlocked
from submissions.chosen_audiences import audience_of
from submissions.models import SUBMISSION_PREFIX, SubmissionEntry
from submissions.pipeline.run import ACTOR, Run
from submissions.source_audiences import audience_of_source
from submissions.states import State
from submissions.store.evidence import STRUCTURE, Evidence, contract_of, findings_of
from submissions.store.records import Submission
from submissions.store.transitions import transition
from submissions.uploads.still_owned import why_not_theirs
from submissions.uploads.stored import CHANGELOG_OF_UPLOAD, VERSION_OF_UPLOAD
from submissions.verification.packages import SkillPackage
from submissions.verification.scan_keys import key_of_results
from vskill.accounts.audiences import narrower
from vskill.environments import WorkerEnv
from vskill.kv.clock import parse_isoformat


def _summary(submission: Submission, summary: str) -> str:
    """Return the sentence beside the verdict; for a skill that was held: that a person approved it, and why."""
    if not submission.text("approvedBy"):
        return summary
    return f"Held by the checks, then approved by an operator: {submission.text('approvalReason')}"


def _texts(value: object) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def _scan_key(evidence: list[Evidence], decision: dict[str, Any]) -> str:
    """Return the key of the scan that a skill is published by; empty where no engine has read it."""
    results = [one.result for one in evidence if one.engine != STRUCTURE]
    return key_of_results(results, str(decision.get("policyHash", ""))) if results else ""


def _is_overtaken(env: WorkerEnv, submission: Submission) -> bool:
    """Return whether a later submission of the same skill is published already, as while this one was held."""
    submitted_at = parse_isoformat(submission.value.get("createdAt"))
    if not submission.text("identity") or submitted_at is None:
        return False
    same = SubmissionEntry.objects.using(env.database).filter(namespace=env.name, identity=submission.text("identity"))
    later = same.filter(submitted_at__gt=submitted_at, state=State.PUBLISHED)
    return later.exclude(key=f"{SUBMISSION_PREFIX}{submission.id}").exists()


def publish_package(run: Run, package: SkillPackage, evidence: list[Evidence]) -> Submission:
    """Publish ``package`` with the ``evidence`` about it, move the submission of ``run`` to PUBLISHED, and return it.

    Both are one transaction, so that neither is ever seen without the other. Raises ``PublicationBlocked`` also where
    an upload for a publisher comes from an account that has its claim no more, and where others would see it than it
    was submitted for.
    """
    current = [one for one in evidence if one.content_hash == package.content_hash]
    env, submission = run.env, run.submission
    if reason := why_not_theirs(env, submission):
        raise PublicationBlocked(reason)
    chosen = audience_of(submission.value)
    audience = narrower(audience_of_source(env, submission.text("repoUrl")), chosen)
    if audience is None:
        raise PublicationBlocked(
            "it was submitted for another team than the one that the policy shows its source to now. Nothing was kept. "
            "Reject it, and have it submitted again."
        )
    stored = submission.value.get("decision")
    decision = stored if isinstance(stored, dict) else {}
    publication = Publication(
        submission_id=submission.id,
        repo_url=submission.text("repoUrl"),
        skill_path=submission.text("skillPath"),
        commit_sha=run.commit_sha,
        source_ref=run.ref,
        content_hash=package.content_hash,
        name=package.name,
        description=package.description,
        license=package.license,
        compatibility=package.compatibility,
        metadata=package.metadata,
        declared_version=submission.text(VERSION_OF_UPLOAD) or package.version,
        files=tuple(PublishedFile(one.path, one.size, one.sha256, one.executable) for one in package.files),
        root=package.root,
        skill_md=package.skill_md,
        verdict=submission.text("verdict"),
        verdict_summary=_summary(submission, str(decision.get("summary", ""))),
        findings=tuple(finding.as_json() for finding in findings_of(current)),
        engines=tuple(
            {"name": one.engine, "version": one.result.engine_version, "status": one.result.status} for one in current
        ),
        capabilities=tuple(sorted({name for one in current for name in one.result.capabilities})),
        contract=contract_of(current),
        also_at=_texts(submission.value.get("alsoAt")),
        continues=continues if isinstance(continues := submission.value.get("continues"), str) else None,
        overtaken=_is_overtaken(run.env, submission),
        signature=run.signature,
        scan_key=_scan_key(current, decision),
        changelog=submission.text(CHANGELOG_OF_UPLOAD),
        planned_slug=submission.text("plannedSlug"),
        audience=audience,
        for_nobody_but=chosen,
        actor=ACTOR,
    )
    prepared = prepare_publication(publication)
    with transaction.atomic(using=env.database):
        published = publish_skill(env, prepared)
        return transition(
            env,
            submission,
            State.PUBLISHED,
            reason=f"published as {published.slug} {published.version}",
            actor=ACTOR,
            trigger="publish",
            changes={"slug": published.slug, "version": published.version, "commitSha": run.commit_sha},
        )
