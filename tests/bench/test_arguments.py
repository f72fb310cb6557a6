"""The benchmark refuses what it cannot measure, in words."""

from __future__ import annotations

import pytest

from tests.bench.__main__ import LEAST_ENTRIES, main


@pytest.mark.parametrize("entries", ["1000", "0", "-1", "many", str(LEAST_ENTRIES - 1)])
def test_too_few_entries_are_refused(capsys: pytest.CaptureFixture[str], entries: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main([f"--entries={entries}"])
    assert ended.value.code == 2
    assert f"at least {LEAST_ENTRIES}, because a listing is measured page by page" in capsys.readouterr().err
