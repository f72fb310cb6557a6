"""Decide about a package, and where it would be held decide again without the findings that a reviewer accepts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from submissions.verification.engines.base import EngineResult
from submissions.verification.fingerprints import contents_of, waived
from submissions.verification.package_verdict import decide_package
from submissions.verification.packages import SkillPackage
from submissions.verification.verdict import Decision, Verdict
from submissions.waivers.store import active_words
from vskill.environments import WorkerEnv
from vskill.kv.threads import readers

_HELD = frozenset({Verdict.HELD, Verdict.HELD_HIGH})


@dataclass(frozen=True)
class Judged:
    """A decision with the package and the results that it was made of, whose findings say what is waived."""

    decision: Decision
    package: SkillPackage
    results: tuple[EngineResult, ...]

    @property
    def any_waived(self) -> bool:
        """Return whether a finding is waived."""
        found = [*self.package.findings, *(one for result in self.results for one in result.findings)]
        return any(one.waived for one in found)


async def judge(
    env: WorkerEnv,
    identity: str,
    package: SkillPackage,
    results: Sequence[EngineResult],
    engines: Iterable[str],
    *,
    known_bad: bool = False,
) -> Judged:
    """Decide about ``package`` of the skill ``identity``, as ``decide_package`` does, under its waivers.

    ``results``, ``engines`` and ``known_bad`` are those of ``decide_package``. The waivers are asked for only where
    findings would hold it.
    """
    names = tuple(engines)
    bare = replace(package, findings=waived(package.findings, {}, {}))
    found = tuple(replace(one, findings=waived(one.findings, {}, {})) for one in results)
    decision = decide_package(bare, found, names, known_bad=known_bad)
    if decision.verdict not in _HELD or not (words := await readers.run(active_words, env, identity)):
        return Judged(decision, bare, found)
    return await readers.run(_under, bare, found, names, words)


def _under(
    package: SkillPackage, results: tuple[EngineResult, ...], engines: tuple[str, ...], words: dict[str, str]
) -> Judged:
    contents = contents_of(package)
    package = replace(package, findings=waived(package.findings, contents, words))
    results = tuple(replace(one, findings=waived(one.findings, contents, words)) for one in results)
    return Judged(decide_package(package, results, engines), package, results)
