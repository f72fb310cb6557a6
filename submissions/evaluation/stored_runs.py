"""Keep what engines said in a folder, so that a measure which was interrupted goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from submissions.verification.engines.base import Engine, EngineResult, EngineStatus
from submissions.verification.packages import SkillPackage
from submissions.verification.runner import EngineRun


class StoredRuns:
    """Results by content hash, engine, its version and that of its adapter; one file each, below ``folder``."""

    def __init__(self, folder: Path, *, read: bool = True) -> None:
        """Keep the folder, which is made with the first result; without ``read`` only new results are stored."""
        self._folder = folder
        self._read = read

    def get(self, engine: Engine, package: SkillPackage) -> EngineRun | None:
        """Return what was stored for this content and engine, or ``None``; a broken file counts as none."""
        if not self._read:
            return None
        try:
            value = json.loads(self._file(engine, package).read_text(encoding="utf-8"))
            return EngineRun(EngineResult.from_json(value["result"]), float(value["cpuSeconds"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, engine: Engine, package: SkillPackage, run: EngineRun) -> None:
        """Store a run, unless the engine failed: the next measure tries again."""
        if run.result.status in (EngineStatus.FAILED, EngineStatus.TIMED_OUT):
            return
        file = self._file(engine, package)
        file.parent.mkdir(parents=True, exist_ok=True)
        value = json.dumps({"result": run.result.as_json(), "cpuSeconds": run.cpu_seconds})
        # Whoever interrupts this leaves no half of a file under the name that is read.
        new = file.with_suffix(f".{os.getpid()}")
        new.write_text(value, encoding="utf-8")
        new.replace(file)

    def _file(self, engine: Engine, package: SkillPackage) -> Path:
        key = "\0".join((engine.name, engine.version, str(engine.adapter)))
        folder = f"{engine.name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
        return self._folder / folder / package.content_hash[:2] / f"{package.content_hash}.json"
