"""The CMI rows of a real Qwen3-4B and of the StrategyQA run
(Anish-1101-lab/cot-manipulation-monitor)."""

from __future__ import annotations

from pathlib import Path

import pytest

from cotlab.metrics.mediation.published import (
    ZERO_DROP_REASON,
    PublishedFile,
    published_summary,
    read_published_cmi,
)
from cotlab.metrics.mediation.published_checks import published_warnings
from cotlab.suites.importers.cmi import read_cmi_file

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "cotman"
SPANS = "cmi_layers_all_qwen3_4B"
LAYERS = "cmi_layers_per_layer_all_qwen3_4B"
STRATEGY = "strategyqa_qwen_cmi_layers_per_layer_all"
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="no CMI rows beside the repository (../shared/data/cotman)"
)


def read(name: str) -> PublishedFile:
    return read_published_cmi(name, read_cmi_file(FOLDER / f"{name}.json").rows_by_item)


# Counted in the files by their drops alone: rows, items, total drop 0, total drop in (0, .01)
@pytest.mark.parametrize(
    ("name", "rows", "items", "zero", "small"),
    [(SPANS, 720, 20, 710, 0), (LAYERS, 720, 20, 710, 0), (STRATEGY, 2400, 100, 2163, 25)],
)
def test_every_row_follows_from_its_own_drops(
    name: str, rows: int, items: int, zero: int, small: int
) -> None:
    file = read(name)
    found = published_summary(file)
    assert (found.rows, found.items, found.zero, found.small) == (rows, items, zero, small)
    assert found.defined == rows - zero - small
    assert found.within == found.compared == rows - zero
    assert all(abs(row.difference) <= 0.02 for row in file.rows if row.difference is not None)
    assert all(
        (row.cmi is None) == (row.bypass is None) == (row.reason is not None) for row in file.rows
    )
    assert all(
        row.published_cmi == 0 for row in file.rows if row.reason == ZERO_DROP_REASON
    )  # what the epsilon makes of 0 / 0


def test_nine_in_ten_strategyqa_rows_are_undefined_not_bypass() -> None:
    rows = read(STRATEGY).rows
    undefined = [row for row in rows if row.reason == ZERO_DROP_REASON]
    assert (
        len(undefined) / len(rows) == 2163 / 2400 == 0.90125
    )  # 2,163 rows in which neither patch lowers log P
    assert all(row.published_bypass == 1 and row.bypass is None for row in undefined)


def test_the_two_qwen_files_are_one_measurement() -> None:
    told = published_warnings([read(SPANS), read(LAYERS), read(STRATEGY)])
    assert [line for line in told if line.startswith("Duplicate file")] == [
        f"Duplicate file: {SPANS} and {LAYERS} hold the same rows; count them once."
    ]
    assert (
        sum(line.startswith("Layer count") for line in told) == 2
    )  # 36 layer rows an item there, 24 in StrategyQA
