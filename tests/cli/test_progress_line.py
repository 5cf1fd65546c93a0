"""The line of progress where it goes to a file."""

from __future__ import annotations

import pytest

from cotlab.cli.screen import ProgressBar
from cotlab.store.live import RunProgress


def test_a_line_of_progress_in_a_file_is_whole(capfd: pytest.CaptureFixture[str]) -> None:
    progress = RunProgress(
        items_done=848,
        items_total=960,
        n_scorers=3,
        answered=848,
        hits=454,
        limited=12,
        rate=31.0,
        spent_micro=12_345,
        cap_micro=2_000_000,
        concurrency=32,
        in_flight=30,
        eta_s=131.0,
    )
    with ProgressBar() as bar:
        bar.announce("20261126-154321-868-612f")
        bar.show_progress(progress)
    (line,) = [x for x in capfd.readouterr().err.splitlines() if "20261126" in x]
    assert "run 20261126-154321-868-612f" in line and "848/960 items × scorers" in line
    for text in ("848 replies", "454 from the log", "of $2.00", "30 in flight", "131 s left"):
        assert text in line
