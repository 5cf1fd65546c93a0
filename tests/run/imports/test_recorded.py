"""A log of another tool as a run, without the tool: replies by draw, clusters, what is refused."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cotlab.analysis.view import run_view
from cotlab.core.errors import ConfigError
from cotlab.core.requests import Response
from cotlab.core.types import Item, ModelRef
from cotlab.providers.offline import Recorded
from cotlab.run.imports.logs import store_inspect_log
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.suites.importers.logs import InspectLog, with_clusters

CHAINS = {
    "a-epoch1": "1 + 1 = 2.\nANSWER: 2",
    "a-epoch2": "1 + 1 = 3.\nANSWER: 3",
    "b-epoch1": "2 + 2 = 4.\nANSWER: 4",
    "b-epoch2": "",
}


def recorded_log() -> InspectLog:
    items = [
        Item(
            item_id,
            "1 + 1?" if item_id < "b" else "2 + 2?",
            None,
            (),
            meta={"task": "sums", "sample_id": item_id[0], "epoch": int(item_id[-1])},
        )
        for item_id in CHAINS
    ]
    replies = {name: Response("", text) for name, text in CHAINS.items() if text}
    return InspectLog(
        "sums.eval",
        "vendor/m",
        "sums",
        with_clusters(items),
        CHAINS,
        replies,
        {"status": "success"},
    )


def test_each_draw_of_a_question_has_its_own_reply_and_a_question_counts_once(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path)
    run = store_inspect_log(store, recorded_log(), ["verification"], tags={"by": "us"})
    view = run_view(store, run.run_id)
    table = view.scores("arithmetic_ok")
    values = dict(zip(table["item_id"], table["value"], strict=True))
    assert [values[name] for name in ("a-epoch1", "a-epoch2", "b-epoch1")] == [1.0, 0.0, 1.0]
    (missing,) = table[table["status"] == "undefined"]["reason"]
    assert missing == "the imported log of vendor/m holds no reply to this request"
    (estimate,) = read.run_estimates(store, run.run_id, ["arithmetic_ok"]).to_dict("records")
    assert (estimate["point"], estimate["n"], estimate["n_undefined"]) == (0.75, 2, 1)
    assert view.plan.tags == {"task": "sums", "status": "success", "by": "us"}
    assert (view.plan.subject.provider, view.plan.subject.name) == ("recorded", "vendor/m")
    facets = view.scores("verification")["facet"].unique()
    assert all('"link"' in facet for facet in facets)  # those without a chain too


def test_a_sample_that_ended_in_an_error_has_its_message_as_the_reason(tmp_path: Path) -> None:
    log = recorded_log()
    meta = {**log.items[3].meta, "error": "sandbox\x1b[31m died\n\x07at once"}
    log = replace(log, items=(*log.items[:3], replace(log.items[3], meta=meta)))
    store = Store(tmp_path)
    run = store_inspect_log(store, log, ["verification", "flags"])
    view = run_view(store, run.run_id)
    for metric in ("arithmetic_ok", "flags"):
        rows = view.scores(metric).query("item_id == 'b-epoch2'")
        (status,), (reason,) = rows["status"].unique(), rows["reason"].unique()
        assert status == "error" and reason.startswith("logged by Inspect: sandbox")
        assert reason.endswith("died at once") and not set("\x1b\x07\n") & set(reason)
    assert store_inspect_log(store, log, ["verification", "flags"]).run_id == run.run_id


def test_a_recorded_model_comes_from_a_log() -> None:
    with pytest.raises(ConfigError, match="comes from an imported log"):
        Recorded(ModelRef("recorded", "vendor/m"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("import", "inspect", "x.eval"), "[inspect]"),
        (("export", "r", "--output", "x.eval"), "[inspect]"),
        (("import", "other", "x.eval"), "'other'"),
        (("import", "inspect", "x.eval", "--tag", "x"), "--tag is written key=value"),
        (("import", "inspect", "."), "holds no Inspect log: no .eval file"),
    ],
)
def test_one_message_says_what_is_missing(
    arguments: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    code = (
        "import sys; sys.modules['inspect_ai'] = None; sys.argv[0] = 'cotlab';"
        " from cotlab.cli.main import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        check=False,
        text=True,
        timeout=600,
        cwd=tmp_path,
        env={
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": str(Path(__file__).parents[3]),
            "COTLAB_STORE": str(tmp_path / "store"),
        },
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr and "Traceback" not in done.stderr
