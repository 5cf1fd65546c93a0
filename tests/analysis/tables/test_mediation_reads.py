"""Tables of mediation over a suite read the scores without a value, and few others."""

from __future__ import annotations

import pandas as pd
import pytest

import cotlab
from cotlab.analysis.tables import mediation
from cotlab.analysis.view import RunView
from cotlab.store.database import Store
from cotlab.store.facet_scores import list_facets, scores_without_value


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> RunView:
    store = Store(tmp_path_factory.mktemp("patched"))
    options = {"model": "faithful-a", "limit": 3, "scorer": ["mediation"], "control": "other"}
    run = cotlab.run_suite("wordproblems", store=store.folder, **options)
    return RunView.read(store, run.run_id)


def test_the_settings_are_those_of_the_scores(view: RunView) -> None:
    scores = mediation.with_facets(view.scores("cmi", with_evidence=False))
    facets = pd.DataFrame({"metric": "cmi", "facet": list_facets(view.store, view.id, "cmi")})
    settings = mediation.available_settings(mediation.with_facets(facets))
    assert settings == mediation.available_settings(scores) and settings


@pytest.mark.parametrize("name", mediation.METRICS_BY_TABLE)
@pytest.mark.parametrize("max_items", [0, mediation.MAX_RAW_ITEMS])
def test_each_table_is_the_one_of_all_scores(
    view: RunView, name: str, max_items: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mediation, "MAX_RAW_ITEMS", max_items)
    metrics = mediation.METRICS_BY_TABLE[name]
    means = mediation.with_facets(view.estimates)
    raw = means[means["metric"].isin(metrics) & (means["n"] <= max_items)]["facet"].unique()
    read = scores_without_value(view.store, view.id, metrics, list(raw))
    every = view.scores(*metrics, with_evidence=False)
    assert read["value"].isna().sum() == every["value"].isna().sum()
    if not max_items:
        assert len(read) < len(every)
    (setting, *_) = mediation.available_settings(
        mediation.with_facets(view.scores("cmi", with_evidence=False))
    )
    make = getattr(mediation, name)
    tables = [make(mediation.with_facets(scores), means, setting) for scores in (read, every)]
    assert tables[0].to_csv() == tables[1].to_csv() and len(tables[0])
