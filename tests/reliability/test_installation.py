"""The tools of these tests signal the intended processes and no others."""

from __future__ import annotations

import signal
import subprocess

import pytest

from tests.reliability.installation import Installation


def test_no_signal_reaches_whoever_has_the_number_of_a_process_that_is_gone(one: Installation) -> None:
    gone = one.start("clear")
    gone.succeeds()
    with subprocess.Popen(["tail", "-f", "/dev/null"]) as stranger:
        try:
            gone.pid = stranger.pid
            with pytest.raises(ProcessLookupError, match="has ended with 0"):
                gone.signal(signal.SIGTERM)
            assert stranger.poll() is None
        finally:
            stranger.kill()


def test_how_a_process_ended_may_be_asked_again(one: Installation) -> None:
    killed = one.start("consume", names=["default"], seconds=600.0)
    killed.killed()
    assert killed.ends() == -signal.SIGKILL
    one.run("clear")
