"""Scan one published version again, from the archive that is given to those who install it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from marketplace.artifacts.archives import check_path
from marketplace.errors import ArchiveError
from marketplace.likeness.published import files_of
from marketplace.likeness.signature import Signature
from marketplace.models import SkillVersion
from marketplace.skills.publishers import owned_by
from submissions.queue.base import InvalidMessage
from submissions.rescan.record import Rescanned, keep_key, record
from submissions.source.fetching import scratch_folder
from submissions.source.plain_folder import open_folder
from submissions.verification.engines.base import UNFINISHED, Engine, EngineResult
from submissions.verification.errors import EngineIncomplete, InvalidPackage
from submissions.verification.findings import Severity
from submissions.verification.package_signature import signature_of
from submissions.verification.package_verdict import decide_format
from submissions.verification.packages import SkillPackage, read_package
from submissions.verification.runner import run_engine
from submissions.verification.scan_keys import current_key, engines_of
from submissions.verification.verdict import Decision, Verdict
from submissions.waivers.judge import judge
from vskill.environments import WorkerEnv
from vskill.fair_slots import FairSlots
from vskill.kv.threads import readers, writers
from vskill.work_limits import hold_slot

logger = logging.getLogger(__name__)

# Beside the publishers that wait for a slot, all of these scans are one.
_PUBLISHER: Final = "rescan"


@dataclass(frozen=True)
class _Scan:
    decision: Decision
    results: tuple[EngineResult, ...] = ()
    signature: Signature | None = None
    capabilities: tuple[str, ...] = ()


async def rescan(
    env: WorkerEnv, subject: str, *, last_attempt: bool = False, slots: FairSlots | None = None
) -> Rescanned | None:
    """Scan the version with the number ``subject`` again, and keep the result; ``None`` where that was not due.

    It is not due where its last scan was by the same engines and rules, and where the policy scans nothing of its
    owner. With ``last_attempt`` an engine that fails leaves the verdict ``inconclusive``, which flags nobody. ``slots``
    bounds the scans of this process. Raises ``InvalidMessage`` where there is no such version, and ``EngineIncomplete``
    where a later attempt may do better.
    """
    engines = engines_of(env)
    key = current_key(engines)
    version = await readers.run(_version, env, subject)
    if version.scan_key == key:
        return None
    trusted = owned_by(version.skill.repo_url, env.policy.trusted_owners)
    if not engines or (trusted and not env.policy.scan_trusted_owners):
        await writers.run(keep_key, env, version, key)
        return None
    async with scratch_folder() as folder:
        scan = await _scan(env, version, engines, folder, slots)
    unfinished = [result for result in scan.results if result.status in UNFINISHED]
    if unfinished and not last_attempt:
        failures = "; ".join(f"{result.engine} {result.status}: {result.error}" for result in unfinished)
        raise EngineIncomplete(f"The scan did not finish and is tried again: {failures}")
    spared = trusted and all(one.severity.rank < Severity.CRITICAL.rank for one in scan.decision.findings)
    return await writers.run(
        record,
        env,
        version,
        key,
        scan.decision,
        scan.results,
        signature=scan.signature,
        capabilities=scan.capabilities,
        spared=spared,
    )


def _version(env: WorkerEnv, subject: str) -> SkillVersion:
    versions = SkillVersion.objects.using(env.database).filter(namespace=env.name)
    found = versions.select_related("skill").filter(pk=subject).first() if subject.isdigit() else None
    if found is None:
        raise InvalidMessage(f"There is no published version with the number {subject[:30]!r} here.")
    return found


async def _scan(
    env: WorkerEnv, version: SkillVersion, engines: list[Engine], folder: Path, slots: FairSlots | None
) -> _Scan:
    # The rules compare the name of a skill with that of its folder.
    path = version.skill_path if version.skill_path is not None else version.skill.skill_path
    name = PurePosixPath(path).name
    source, tree = folder / "source", folder / "tree"
    tree.mkdir()
    try:
        await readers.run(_unpack, env, version, source / name)
        package = await read_package(open_folder(source), name, destination=tree)
    except (InvalidPackage, ArchiveError) as error:
        findings = error.findings if isinstance(error, InvalidPackage) else ()
        return _Scan(decide_format(findings, str(error)))
    if package.content_hash != version.content_hash:
        logger.warning("version %s is read as other content than it was published with", version.pk)
    results = await _results(env, engines, package, slots)
    judged = await judge(env, version.skill.identity, package, results, [engine.name for engine in engines])
    signature = await readers.run(signature_of, package)
    return _Scan(judged.decision, judged.results, signature, package.capabilities)


def _unpack(env: WorkerEnv, version: SkillVersion, root: Path) -> None:
    executable = {file["path"] for file in version.manifest if file.get("executable")}
    for path, content in files_of(env, version):
        target = root / check_path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        target.chmod(0o700 if path in executable else 0o600)


async def _results(
    env: WorkerEnv, engines: Iterable[Engine], package: SkillPackage, slots: FairSlots | None
) -> list[EngineResult]:
    async def one(engine: Engine) -> EngineResult:
        async with nullcontext() if slots is None else hold_slot(slots, env.name, _PUBLISHER):
            return await run_engine(engine, package.root)

    # All have ended when this returns or raises: one that still ran would read a folder that is being removed.
    scans = [asyncio.create_task(one(engine)) for engine in engines]
    try:
        return await asyncio.gather(*scans)
    finally:
        for scan in scans:
            scan.cancel()
        await asyncio.gather(*scans, return_exceptions=True)


async def give_up(env: WorkerEnv, subject: str, reason: str) -> None:
    """Keep that a version could not be scanned under the present key, so that it is not sent again and again."""
    engines = engines_of(env)
    try:
        version = await readers.run(_version, env, subject)
    except InvalidMessage as error:
        logger.warning("%s", error)
        return
    summary = f"It could not be scanned again: {reason}"
    decision = Decision(Verdict.INCONCLUSIVE, summary, (summary,), (), "")
    await writers.run(record, env, version, current_key(engines), decision, ())
