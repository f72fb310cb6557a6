"""The benchmark refuses what it cannot measure, in words."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.bench.__main__ import LEAST_ENTRIES, main


@pytest.mark.parametrize("entries", ["1000", "0", "-1", "many", str(LEAST_ENTRIES - 1)])
def test_too_few_entries_are_refused(capsys: pytest.CaptureFixture[str], entries: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main([f"--entries={entries}"])
    assert ended.value.code == 2
    assert f"at least {LEAST_ENTRIES}, because a listing is measured page by page" in capsys.readouterr().err


def test_it_starts_by_itself_as_no_process_of_the_product() -> None:
    told = subprocess.run([sys.executable, "-m", "tests.bench", "--help"], capture_output=True, text=True, check=False)
    assert (told.returncode, told.stderr) == (0, "")
