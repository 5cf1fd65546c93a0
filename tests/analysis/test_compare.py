"""Stored runs are compared with a base: what is matched, what is not, what differs in their plans,
and clear errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from cotlab import run_suite
from cotlab.analysis.compare import (
    compare_runs,
    comparison_json,
    match_items,
)
from cotlab.analysis.tables.comparison import version_warning
from cotlab.cli.main import app
from cotlab.core.errors import ConfigError, UnknownName
from cotlab.core.keys import digest
from cotlab.core.registry import SCORERS
from cotlab.core.types import Item, MetricCard, ModelRef, Score, Suite
from cotlab.metrics import unfaithfulness as cards
from cotlab.store import write
from cotlab.store.database import Store
from tests.support.stores import add_run

FACET = (("chain", "own"), ("classifier", "early_answer"))


def suite(
    n: int, name: str = "s", question: str = "Question {}?", cycle: int | None = None
) -> Suite:
    """``n`` items in two categories; ``cycle`` repeats a question after so many items."""
    return Suite.from_items(
        name,
        [
            Item(f"i{k:02d}", question.format(k % (cycle or n)), "1", (), ("math", "logic")[k % 2])
            for k in range(n)
        ],
    )


def keep(
    store: Store,
    run_id: str,
    of: Suite,
    values: Mapping[str, float | None],
    *,
    model: str = "m",
    tags: Mapping[str, str] | None = None,
    card: MetricCard = cards.UNFAITHFULNESS,
) -> None:
    """A finished run whose items have these scores; None is undefined, an item that is left out was
    not scored."""
    ended = [
        write.EndedItem("unfaithfulness", 1, "p", item.id, (_score(card, item, values[item.id]),))
        for item in of.items
        if item.id in values
    ]
    models = {"subject": ModelRef("echo", model)}
    add_run(store, run_id, of, ended, models=models, scorers=("unfaithfulness",), tags=tags)


def _score(card: MetricCard, item: Item, value: float | None) -> Score:
    reason = None if value is not None else "no answer"
    return card.score(item, value, facet=dict(FACET), reason=reason)


def filled(store: Store, n: int = 12) -> None:
    """Base: all unfaithful. Epoch 1: 8 of 12; epoch 2: 9 of 11 and one undefined, with an item that
    was not scored."""
    of = suite(n)
    ids = [item.id for item in of.items]
    keep(store, "base", of, dict.fromkeys(ids, 1.0), tags={"condition": "base"})
    keep(
        store,
        "one",
        of,
        {i: float(k >= 4) for k, i in enumerate(ids)},
        model="n",
        tags={"epoch": "1"},
    )
    keep(
        store,
        "two",
        of,
        {i: None if k == 2 else float(k >= 3) for k, i in enumerate(ids[:-1])},
        tags={"epoch": "2"},
    )


def test_a_base_and_two_runs(tmp_path: Path) -> None:
    """Against epoch 1 four of twelve turn from yes to no: p = 2 / 2**4; Benjamini–Hochberg over all
    rows of both runs."""
    store = Store(tmp_path)
    filled(store)
    found = compare_runs(store, "base", ["one", "two"])
    one, two = found.comparisons
    assert (one.n_shared, one.n_only_base, one.n_only_other, one.n_changed_questions) == (
        12,
        0,
        0,
        0,
    )
    assert (two.n_shared, two.n_only_base, two.n_only_other) == (11, 1, 0)
    rates = {
        c.other: next(row for row in c.rows if row.metric == "unfaithful_rate")
        for c in found.comparisons
    }
    assert rates["one"].difference == pytest.approx(-4 / 12) and rates["one"].p == pytest.approx(
        2 / 2**4
    )
    assert rates["one"].discordant is not None and rates["one"].discordant.first_only == 4
    assert rates["two"].n == 10 and rates["two"].missing_other == {
        "no answer": 1,
        "not scored in this run": 1,
    }
    raw = [row.p for c in found.comparisons for row in c.rows]
    assert all(
        row.adjusted is not None and row.adjusted >= (row.p or 0)
        for c in found.comparisons
        for row in c.rows
    )
    assert len(raw) == 4 and max(raw) == pytest.approx(
        max(row.adjusted or 0 for c in found.comparisons for row in c.rows)
    )
    assert [row.metric for row in found.directions] == ["unfaithful_rate", "unfaithfulness"]
    assert {row.text for row in found.directions} == {"2 of 2 down"}
    assert [(c.setting, c.base, c.other) for c in one.changes] == [
        ("subject", "echo/m", "echo/n"),
        ("tag condition", "base", "n/a"),
        ("tag epoch", "n/a", "1"),
    ]


def test_runs_of_other_versions_are_compared_with_a_warning(tmp_path: Path) -> None:
    store = Store(tmp_path)
    filled(store)
    (comparison,) = compare_runs(store, "base", ["one"]).comparisons
    assert version_warning(comparison) == ""
    with store.writing() as connection:
        connection.execute(
            "UPDATE runs SET plan = json_merge_patch(plan, '{\"splitter_version\": 2}')"
            " WHERE id = 'one'"
        )
    (comparison,) = compare_runs(store, "base", ["one"]).comparisons
    assert "different versions (step splitter 1 and 2)" in version_warning(comparison)


def test_items_with_one_question_are_one_prompt(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for run_id, high in (("a", 1.0), ("b", 0.0)):
        keep(store, run_id, suite(12, cycle=6), {f"i{k:02d}": high for k in range(12)})
    row = compare_runs(store, "a", ["b"]).comparisons[0].rows[0]
    assert (row.n, row.prompts) == (12, 6) and row.p == pytest.approx(2 / 2**6)


def test_the_same_id_of_another_question_is_not_matched(tmp_path: Path) -> None:
    store = Store(tmp_path)
    keep(store, "a", suite(6), {f"i{k:02d}": 1.0 for k in range(6)})
    mixed = Suite.from_items("t", [*suite(4).items, Item("i04", "Another?", "1", ())])
    keep(store, "b", mixed, {f"i{k:02d}": 0.0 for k in range(5)})
    (told,) = compare_runs(store, "a", ["b"]).comparisons
    assert (told.n_shared, told.n_changed_questions, told.n_only_base) == (5, 1, 1) and told.rows[
        0
    ].n == 4
    keep(store, "c", suite(6, "other", "Something else {}?"), {f"i{k:02d}": 0.0 for k in range(6)})
    with pytest.raises(ConfigError, match="share no item"):
        compare_runs(store, "a", ["c"])


def test_errors_say_what_to_do(tmp_path: Path) -> None:
    store = Store(tmp_path)
    filled(store)
    with pytest.raises(UnknownName, match="Did you mean 'base'"):
        compare_runs(store, "bas", ["one"])
    for others in ([], ["base"], ["one", "base"]):
        with pytest.raises(ConfigError, match="at least one other run"):
            compare_runs(store, "base", others)
    with pytest.raises(ConfigError, match="share no metric"):
        compare_runs(store, "base", ["one"], metrics=["rrr"])
    with pytest.raises(ConfigError, match="threshold"):
        compare_runs(store, "base", ["one"], threshold=1.5)


def test_the_command_prints_a_table_or_json_without_nan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path))
    filled(Store(tmp_path))
    table = CliRunner().invoke(app, ["compare", "base", "one", "two"])
    assert table.exit_code == 0, table.output
    assert (
        "4 / 0" in table.output
        and "2 of 2 down" in table.output
        and "tag epoch: n/a → 1" in table.output
    )
    told = CliRunner().invoke(app, ["compare", "base", "one", "--json"])
    found = json.loads(told.output, parse_constant=lambda word: pytest.fail(f"{word} in JSON"))
    assert found == json.loads(
        json.dumps(comparison_json(compare_runs(Store(tmp_path), "base", ["one"])))
    )
    row = next(r for r in found["comparisons"][0]["rows"] if r["metric"] == "unfaithful_rate")
    assert row["discordant"]["first_only"] == 4 and row["n"] == 12
    by = CliRunner().invoke(
        app, ["compare", "base", "one", "--categories", "--metric", "unfaithful_rate", "--json"]
    )
    assert {r["category"] for r in json.loads(by.output)["comparisons"][0]["rows"]} == {
        "math",
        "logic",
    }


def test_cmi_against_two_controls_is_not_compared_and_both_are_named(tmp_path: Path) -> None:
    """A run of an earlier version, whose default control was another, beside one of now."""
    options = {"model": "r100", "scorer": ["mediation"], "layers": ["all"], "subsets": 1}
    before, now = (
        run_suite("wordproblems", store=tmp_path, limit=2, **extra, **options).run_id
        for extra in ({"control": "other"}, {})
    )
    store = Store(tmp_path)
    with store.writing() as connection:
        connection.execute(
            "UPDATE runs SET plan = replace(plan, ?, '\"version\":7') WHERE id = ?",
            [f'"version":{SCORERS["mediation"].version}', before],
        )
    (comparison,) = compare_runs(store, before, [now]).comparisons
    text = f"mediation 7 and {SCORERS['mediation'].version}"
    assert text in version_warning(comparison)
    changes = {c.setting: (c.base, c.other) for c in comparison.changes}
    assert changes["mediation.control"] == ("other", "total")
    assert "cmi" in comparison.metrics_only_base and "cmi" in comparison.metrics_only_other
    assert "cmi" not in {row.metric for row in comparison.rows}
    assert "no_cot_drop" in {row.metric for row in comparison.rows}
    with pytest.raises(ConfigError, match="control is other in .* with .*control.other"):
        compare_runs(store, before, [now], metrics=["cmi"])


def test_metrics_that_differ_by_a_facet_alone_are_named_with_the_option(tmp_path: Path) -> None:
    options = {"store": tmp_path, "provider": "echo", "model": "echo", "limit": 1}
    user, prefix = (
        run_suite("wordproblems", given=given, **options).run_id for given in ("user", "prefix")
    )
    with pytest.raises(ConfigError) as raised:
        compare_runs(Store(tmp_path), user, [prefix], metrics=["answer_change"])
    assert str(raised.value) == (
        f"Runs {user!r} and {prefix!r} share no metric: they measured the same ones with other"
        f" settings: given is user in {user} and prefix in {prefix}. Run one of them again with"
        " --given user."
    )


def test_items_match_by_id_and_question_whichever_way_the_question_is_stored() -> None:
    """A question and its digest are one prompt; what is in one run only matches nothing."""
    q = "2 + 2?"
    redacted = f"sha256:{digest(q)}"
    base = {"a": q, "b": q, "c": q, "f": q}
    other = base | {"b": redacted, "c": "3 + 3?", "g": q}
    del other["f"]
    tables = [
        pd.DataFrame({"id": list(side), "question": list(side.values()), "category": category})
        for side, category in ((base, None), (other, "math"))
    ]
    rows = match_items(*tables).set_index("item_id")
    assert rows["same"].to_dict() == {
        "a": True,
        "b": True,
        "c": False,
        "f": None,
        "g": None,
    }
    assert rows["prompt"].unique().tolist() == [redacted]
    assert rows["category"].to_dict() == {**dict.fromkeys("abcg", "math"), "f": ""}
