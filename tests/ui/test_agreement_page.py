"""The page Agreement: agreement between raters, and the queue of their disagreements."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cotlab.analysis.tables.run import agreement_points
from cotlab.core.labels import Label
from cotlab.figures.comparison import label_agreement
from cotlab.review.labelling.agreement import measure_agreement
from cotlab.store import labels as label_store
from cotlab.store.database import Store
from tests.support.label_widget import press, queue_of
from tests.support.pages import opened
from tests.support.stores.reliability import fill

pytestmark = pytest.mark.soak  # that each page opens, full and empty, is tested with every run


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labels") / "store"
    fill(folder, 12, estimated=False)
    return folder


@pytest.fixture
def store(filled: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("COTLAB_STORE", str(filled))
    return Store()


def test_agreement_shows_alpha_kappa_and_who_differs(store: Store) -> None:
    queue = queue_of(store, "agree", raters=2)
    said = {"ada": "aannua", "bob": "aananu"}
    words = {"a": "acceptable", "n": "not_acceptable", "u": "unsure"}
    rows = [
        Label(
            f"{name}-{k}",
            "run-1",
            f"i-{k:02}",
            name,
            words[word],
            True,
            datetime.now(UTC),
            queue=queue,
        )  # type: ignore[arg-type]
        for name, told in said.items()
        for k, word in enumerate(told)
    ]
    with store.writing() as connection:
        label_store.add_labels(connection, rows)
    app = opened("agreement", queue=queue)
    (chart,) = [json.loads(e.proto.spec) for e in app.get("plotly_chart")]
    told = [a["text"] for a in chart["layout"]["annotations"]]
    # By hand: the same on 3 of 6; shares a 3 n 2 u 1 and a 3 n 2 u 1, so chance is (9 + 4 + 1) / 36
    # = 7/18 and kappa
    # (1/2 - 7/18) / (11/18) = 2/11 = 0.182. Pooled 6, 4, 2: chance to differ 1 - (30 + 12 + 2) /
    # 132 = 2/3, alpha 1 - 3/4.
    assert told[0].startswith("0.250 [") and told[1].startswith("0.182 [")
    assert all("n = 6 items" in text for text in told)
    app = opened("disagreements", queue=queue)
    assert any(c.value == "3 items, 3 of them not adjudicated." for c in app.caption)
    press(app, "Queue 3 for adjudication")
    assert label_store.list_label_queues(store).iloc[0][["kind", "n"]].tolist() == [
        "adjudication",
        3,
    ]


def test_the_figure_says_what_is_not_there() -> None:
    table = agreement_points(measure_agreement(Store()), "reasoning")
    assert table.empty and "no item has labels of two raters" in str(
        label_agreement(table).layout.annotations[0].text
    )
