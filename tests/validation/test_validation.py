"""The statistics of the validation by hand, and one small run of it through the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from cotlab.core.program import Headline
from cotlab.core.registry import SCORERS
from cotlab.validation import ORGANISMS, validate
from cotlab.validation.measure import as_json, read_report
from cotlab.validation.tell import auroc, spearman, tell
from cotlab.validation.values import Floats, item_values

NAN = float("nan")


def row(*values: float) -> Floats:
    return np.array(values, dtype=np.float64)


def table(**given: Floats) -> dict[str, Floats]:
    """Values of every organism: 1 for models that follow their chain, 0 for those that do not, unless given."""
    follow = ("faithful-a", "faithful-b", "r100", "hint")
    return {m: given.get(m.replace("-", "_"), row(*[1.0 if m in follow else 0.0] * 4)) for m in ORGANISMS}


def test_auroc_by_hand() -> None:
    """3, 2 against 1, 2: 3 beats both, 2 beats 1 and ties with 2: (2 + 1 + 0.5) / 4 = 0.875."""
    found = auroc([row(3, 2)], [row(1, 2)], seed=0)
    assert found["point"] == 0.875
    assert auroc([row(3, 2)], [row(1, 2)], seed=0, higher=False)["point"] == 0.125
    assert found["n"] == 2 and 0 <= found["lo"] <= 0.875 <= found["hi"] <= 1


def test_auroc_is_mann_whitney_over_defined_values() -> None:
    draw = np.random.default_rng(1)
    faithful, bypass = [draw.integers(0, 6, 30) + 1.0 for _ in "ab"], [draw.integers(0, 6, 30) + 0.0 for _ in "ab"]
    faithful[0][3] = bypass[1][7] = NAN
    one, other = (np.concatenate(side) for side in (faithful, bypass))
    one, other = one[np.isfinite(one)], other[np.isfinite(other)]
    u = stats.mannwhitneyu(one, other).statistic
    assert auroc(faithful, bypass, seed=0)["point"] == pytest.approx(u / (len(one) * len(other)))


def test_auroc_resamples_items_with_all_their_models() -> None:
    """Both models lean on the item alike: only the two resamples of one item alone differ from the point.

    Items (0, 0) and (1, 1): both drawn gives (0.5 + 0 + 1 + 0.5)/4 = 0.5, one drawn twice is a tie, 0.5.
    """
    found = auroc([row(0, 1)], [row(0, 1)], seed=0)
    assert (found["point"], found["lo"], found["hi"]) == (0.5, 0.5, 0.5)


def test_auroc_without_values_is_undefined() -> None:
    found = auroc([row(NAN, NAN)], [row(1, 2)], seed=0)
    assert found == {"point": None, "lo": None, "hi": None, "n": 2, "reason": "a side has no defined value"}
    assert auroc([row(1)], [row(0)], seed=0)["lo"] is None


def test_spearman_and_its_reasons() -> None:
    assert spearman([0, 0.1, 0.2, 0.9, 1.0])[0] == pytest.approx(1)
    assert spearman([1.0, 1.0, 1.0, 1.0, 1.0]) == (None, "all doses have the same mean")
    assert spearman([0, None, 0.2, 0.9, 1.0]) == (None, "a dose has no defined mean")


def test_item_values_take_the_facet_and_leave_gaps() -> None:
    """Item a: mean of 1 and 0 in the mode asked for; b: no defined score; c: none at all. NaN is not 0."""
    told = [("a", "corrupt", 1.0), ("a", "corrupt", 0.0), ("a", "remove", 1.0), ("b", "corrupt", NAN)]
    scores = pd.DataFrame(
        [{"metric": "m", "item_id": i, "facet": json.dumps({"mode": mode, "given": "x"}), "value": v} for i, mode, v in told]
    )
    found = item_values(scores, Headline("m", {"mode": "corrupt"}), ["c", "a", "b"])
    assert found[1] == 0.5 and np.isnan(found[[0, 2]]).all()


def test_a_perfect_metric_has_no_blind_spot_but_its_doses() -> None:
    found = tell("m", table(r25=row(*[0.25] * 4), r50=row(*[0.5] * 4), r75=row(*[0.75] * 4)))
    assert found["auroc"]["point"] == 1 and found["spearman"] == pytest.approx(1)
    (only,) = found["blind_spots"]
    assert only == "Takes the hint-follower for a faithful model: mean 1.000, faithful 1.000, bypassing 0.000."


def test_blind_spots_are_made_from_the_numbers() -> None:
    late = tell("m", table(r75=row(1, 1, 1, 1)))["blind_spots"]
    assert "Does not see doses below 75 %: 0.000 at 50 %, 0.000 at 0 %." in late
    assert "Saturates from 75 % on: 1.000 there, 1.000 at 100 %." in late
    blind = tell("m", {m: row(0.5, 0.5, 0.5, 0.5) for m in ORGANISMS})
    assert blind["blind_spots"] == [
        "Cannot tell faithful from bypassing models (AUROC 0.50 [0.50, 0.50]).",
        "Sees no dose: its mean at every dose is that at 0 (0.500), within the intervals.",
    ]
    assert blind["spearman"] is None and blind["spearman_reason"]
    gap = tell("m", table(bypass_a=row(0, NAN, NAN, 0)))
    assert gap["n_undefined"] == 2
    assert "Undefined on 2 of 40 items (over all models; most in bypass-a: 2)." in gap["blind_spots"]
    assert tell("m", table(), faithful="lower")["blind_spots"][0].startswith("Takes faithful models for bypassing ones")


def test_nothing_undefined_becomes_nan() -> None:
    found = tell("m", {m: row(NAN, NAN) for m in ORGANISMS})
    assert json.loads(as_json(found))["organisms"]["r0"] == {"point": None, "lo": None, "hi": None, "n": 0, "n_undefined": 2}
    assert "NaN" not in as_json(found)
    with pytest.raises(ValueError, match="JSON"):
        as_json({"x": NAN})


def test_headlines_name_cards_of_their_scorer() -> None:
    for scorer in map(SCORERS.__getitem__, SCORERS):
        assert {h.metric for h in scorer.headlines} <= {card.name for card in scorer.cards}


def test_the_command_measures_prints_json_and_goes_on(tmp_path: Path) -> None:
    """Corrupt tells these organisms apart without a miss; a second call finds its runs done and says the same."""
    command = [sys.executable, "-m", "cotlab", "validate", "--items", "4", "--scorer", "ablation", "--json"]
    env = {**os.environ, "COTLAB_STORE": str(tmp_path), "COTLAB_MODE": "filler", "COTLAB_LIMIT": "1"}
    first = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=True)
    report = json.loads(first.stdout)
    told = report["metrics"]["answer_change"]
    assert told["auroc"]["point"] == 1 and told["faithful"] == 1 and told["bypass"] == 0
    assert told["organisms"]["r100"]["n"] == 4 and (report["items"], report["seed"]) == (4, 7)
    assert read_report(tmp_path) == report
    announced: list[str] = []
    again = validate(items=4, scorers=["ablation"], folder=tmp_path, announce=announced.append)
    assert again["metrics"] == report["metrics"] and announced == []
