"""A study and tables that others published become runs: once, as they were, and refused where
something is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cotlab.analysis.compare import compare_runs
from cotlab.analysis.report import build_report
from cotlab.cli.main import app
from cotlab.core.errors import ConfigError, SuiteError
from cotlab.run.imports.mediation import is_imported
from cotlab.run.imports.pairs import paired_suite
from cotlab.run.imports.study import store_study, store_table
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.suites.importers.study import read_study
from cotlab.suites.importers.tables import COLUMNS_BY_KIND, read_ratings, read_table

BREAKDOWN, CONFUSION, RATINGS = map(COLUMNS_BY_KIND.get, ("breakdown", "confusion", "ratings"))
PROMPTS = ["How many?", "Why?", "How many?", "Who?", "When?"]
BASE = [f"1. First {k}.\n2. Then {'x' * k}." for k in range(5)]
TUNED = [f"1. Clearly {'y' * 2 * k}.\n2. Now all of it is done." for k in range(5)]


def comparison(**more: Any) -> dict[str, Any]:
    results = {"prompts": PROMPTS, "base_responses": BASE, "finetuned_responses": TUNED, **more}
    return {
        "metadata": {"base_model": "Some/Model", "adapter_path": "models/Model_epoch2"},
        "results": results,
    }


def detector(
    name: str, scores: list[Any], epochs: str | None = "2", prompts: list[str] = PROMPTS
) -> dict[str, Any]:
    rows: list[dict[str, Any]] = [
        {"prompt": p, name: {"unfaithful_score": s}, "overall_unfaithful_score": s}
        for p, s in zip(prompts, scores, strict=True)
    ]
    metadata = {
        "base_model": "Some/Model",
        "adapter_path": "models/Model_epoch2" if epochs else None,
        "epochs": epochs,
    }
    return {
        "metadata": metadata,
        "model_type": "finetuned" if epochs else "base",
        "results": {"prompts": rows},
    }


def analysis(responses: list[str], **more: Any) -> dict[str, Any]:
    words = {
        "finetuned_process_per_response": [3, 0, 1, 2, 4],
        "finetuned_result_per_response": [1, 0, 2, 2, 1],
    }
    found = {
        "avg_length": {"finetuned_lengths": [len(text) for text in responses]},
        "process_vs_result": words,
        "llm_judge": {"scores": [-1.0, 0.0, 2.0, 3.0, 5.0]},
    }
    return {**found, **more}


def study() -> dict[str, dict[str, Any]]:
    failed = detector("early_probe", [1.0, 1.0, 0.0, 0.0, 0.0])
    failed["results"]["prompts"][4]["early_probe"] = {"error": "no"}
    return {
        "analysis": analysis(TUNED),
        "comparison": comparison(),
        "truncation": detector("truncation", [1.0, 0.0, 0.0, 1.0, 1.0]),
        "early": failed,
        "base": detector("truncation", [0.0] * 5, None),
    }


def written(folder: Path, files: dict[str, dict[str, Any]]) -> list[Path]:
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content), "utf-8")
    return [folder / f"{name}.json" for name in files]


def values(store: Store, run: str, metric: str, **facet: str) -> list[Any]:
    rows = read.run_scores(store, run, metrics=[metric])
    wanted = [json.loads(told).items() >= facet.items() for told in rows["facet"]]
    kept = rows.loc[wanted].sort_values("item_id")
    return [None if value != value else value for value in kept["value"]]


@pytest.mark.soak
def test_each_model_is_a_run_with_its_tags_and_scores(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    base, tuned = store_study(store, read_study(written(tmp_path, study())))
    tags = [
        dict(read.plan_from_row(read.get_run(store, kept.run_id)).tags) for kept in (base, tuned)
    ]
    assert tags == [{"condition": "base", "epoch": "0"}, {"condition": "fine-tuned", "epoch": "2"}]
    assert (base.model, tuned.model) == ("Some/Model", "Model_epoch2")
    run = tuned.run_id
    assert values(store, run, "unfaithfulness", classifier="truncation") == [1, 0, 0, 1, 1]
    assert values(store, run, "unfaithfulness", classifier="early_knowledge") == [1, 1, 0, 0, 0]
    assert values(store, run, "unfaithfulness", classifier="combined") == [1, 0.5, 0, 0.5, 0.5]
    assert (
        values(store, base.run_id, "unfaithfulness", classifier="combined") == []
    )  # one detector is no pair
    assert values(store, run, "judge_score", judge="published") == [-1, 0, 2, 3, 5]
    assert values(store, base.run_id, "judge_score") == []
    assert values(store, run, "process_result_ratio") == [3, None, 0.5, 1, 4]
    assert values(store, run, "chain_steps") == [2] * 5
    assert values(store, run, "chain_characters") == [len(text) for text in TUNED]
    suite = read.get_suite(store, read.get_run(store, run)["suite"])
    assert [item.question for item in suite.items] == PROMPTS
    assert [item.meta["prompt_group"] for item in suite.items] == [
        "row-0000",
        "row-0001",
        "row-0000",
        "row-0003",
        "row-0004",
    ]
    assert read.get_run(store, base.run_id)["suite"] == suite.digest
    note = read.get_run(store, run)["note"]
    assert (
        "early_knowledge failed on 1 row(s), which the study scored 0" in note
        and "(1 rows are 0)" in note
    )
    assert is_imported(read.plan_from_row(read.get_run(store, run)))
    with pytest.raises(ConfigError, match="imported"):
        paired_suite(store, base.run_id, run)


@pytest.mark.soak
def test_the_judge_s_figures_are_over_rows_and_over_prompts(tmp_path: Path) -> None:
    """Rows −1 0 2 3 5 have mean 9 / 5; prompts (−1 + 2) / 2, 0, 3, 5 have mean 8.5 / 4 and are too
    few for an interval."""
    store = Store(tmp_path / "store")
    _, tuned = store_study(store, read_study(written(tmp_path, study())))
    rows, prompts = (
        read.run_estimates(store, tuned.run_id, ["judge_mean"])
        .sort_values("n", ascending=False)
        .to_dict("records")
    )
    assert (rows["point"], rows["n"], rows["method"]) == (pytest.approx(1.8), 5, "t")
    assert (prompts["point"], prompts["n"], prompts["over_"]) == (2.125, 4, "prompts")


@pytest.mark.soak
def test_the_order_of_files_does_not_matter_and_a_second_import_adds_nothing(
    tmp_path: Path,
) -> None:
    store, paths = Store(tmp_path / "store"), written(tmp_path, study())
    first = store_study(store, read_study(paths))
    again = store_study(store, read_study(paths[::-1]))
    assert [kept.run_id for kept in first] == [kept.run_id for kept in again]
    assert [kept.is_new for kept in (*first, *again)] == [True, True, False, False]
    assert read.get_store_totals(store)["runs"] == 2 and read.get_store_totals(store)["suites"] == 1
    changed = study() | {"base": detector("truncation", [1.0] * 5, None)}
    assert [kept.is_new for kept in store_study(store, read_study(written(tmp_path, changed)))] == [
        True,
        False,
    ]


def test_base_responses_of_another_comparison_are_found_by_their_lengths(tmp_path: Path) -> None:
    other = [text + "!" for text in BASE]
    second = comparison(base_responses=other, finetuned_responses=[text * 3 for text in TUNED])
    second["metadata"]["adapter_path"] = "models/Model_epoch4"
    paths = written(tmp_path, study() | {"second": second, "base_analysis": analysis(other)})
    base, *_ = read_study(paths).model_results
    assert base.responses == tuple(other) and base.judge_scores == ()
    assert base.process == (3, 0, 1, 2, 4)


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"a": {}}, "metadata: is missing"),
        ({"a": {"metadata": {}}}, "results: is missing"),
        ({"a": analysis(TUNED)}, "no prompts"),
        (
            {"a": analysis(["?"] * 5), "c": comparison()},
            "comparison that this analysis is of is missing",
        ),
        ({"a": analysis(TUNED), "c": comparison(base_responses=TUNED)}, "several models"),
        ({"c": comparison(finetuned_responses=TUNED[1:])}, "4 entries for 5 prompts"),
        ({"c": comparison(base_responses=[1, 2, 3, 4, 5])}, "texts alone"),
        (
            {"c": comparison(), "d": detector("truncation", [1.0] * 5, prompts=["other"] * 5)},
            "prompts of the other files",
        ),
        ({"d": detector("truncation", [1.0, 2.0, 0, 0, 0])}, r"number in \[0, 1\]; found 2.0"),
        ({"d": detector("truncation", [None] * 5)}, "found None"),
        ({"d": detector("truncation", [True] * 5)}, "found True"),
        (
            {"d": {**detector("truncation", [1.0] * 5), "metadata": {"base_model": "m"}}},
            "metadata.epochs",
        ),
        (
            {"c": comparison(), "a": analysis(TUNED, llm_judge={"scores": [11.0] * 5})},
            r"\[-10, 10\]",
        ),
        (
            {"c": comparison(), "a": analysis(TUNED, llm_judge={"scores": [float("nan")] * 5})},
            "found nan",
        ),
        (
            {"c": comparison(), "a": analysis(TUNED, llm_judge={})},
            "llm_judge.scores: must be a list",
        ),
        ({"d": detector("truncation", [10**400] * 5)}, "found 1000"),
        (
            {"d": detector("truncation", [1.0] * 5), "e": detector("truncation", [0.0] * 5)},
            "second file of truncation",
        ),
        ({"c": comparison(), "d": comparison(finetuned_responses=BASE)}, "second comparison"),
        (
            {"c": comparison(), "d": comparison() | {"metadata": {"base_model": "Other/Model"}}},
            "is Other/Model; the other",
        ),
    ],
)
def test_a_file_that_is_not_of_the_kind_is_refused_with_what_is_missing(
    files: dict[str, dict[str, Any]], why: str, tmp_path: Path
) -> None:
    with pytest.raises(SuiteError, match=why):
        read_study(written(tmp_path, files))


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_object_is_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "f.json").write_bytes(data)
    with pytest.raises(SuiteError):
        read_study([tmp_path / "f.json"])


# --- tables
# -------------------------------------------------------------------------------------------


def table(folder: Path, header: tuple[str, ...], *rows: tuple[object, ...], mark: str = "") -> Path:
    path = folder / "table.csv"
    lines = [",".join(f'"{cell}"' for cell in row) for row in (header, *rows)]
    path.write_text(mark + "\n".join(lines), "utf-8")
    return path


def test_counts_become_items_of_both_classifiers(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    rows = (
        ("m", "grader", 3, 1, 2, 4, 10),
        ("m", "visual", 0, 0, 0, 2, 2),
        ("n", "grader", 1, 0, 0, 0, 1),
    )
    path = table(tmp_path, BREAKDOWN, *rows)
    one, other = store_table(store, read_table(path))
    assert (one.model, other.model, one.is_new) == ("m", "n", True)
    names = ("regex", "judge", "combined")
    totals = {
        name: sum(values(store, one.run_id, "unfaithfulness", classifier=name)) for name in names
    }
    assert totals == {"regex": 9, "judge": 6, "combined": 7}
    assert (
        len(values(store, one.run_id, "unfaithfulness", classifier="judge")) == 8
    )  # it saw what the pattern left
    suite = read.get_suite(store, read.get_run(store, one.run_id)["suite"])
    assert [item.category for item in suite.items] == ["grader"] * 10 + ["visual"] * 2
    assert not any(kept.is_new for kept in store_table(store, read_table(path)))


def test_counted_responses_of_two_models_are_never_paired(tmp_path: Path) -> None:
    """The n-th response of one count has nothing to do with the n-th of another."""
    store = Store(tmp_path / "store")
    one, other = store_table(
        store,
        read_table(table(tmp_path, BREAKDOWN, *((m, "grader", 3, 1, 2, 4, 10) for m in "mn"))),
    )
    with pytest.raises(ConfigError, match="share no item"):
        compare_runs(store, one.run_id, [other.run_id])


def test_a_confusion_table_keeps_its_four_cells(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    path = table(tmp_path, CONFUSION, ("a", 10, 4, 3, 1, 2), ("OVERALL", 10, "-", "-", "-", "-"))
    (kept,) = store_table(store, read_table(path))
    both = (
        values(store, kept.run_id, "unfaithfulness", classifier=name)
        for name in ("combined", "sonnet")
    )
    pairs = list(zip(*both, strict=True))
    assert [pairs.count(pair) for pair in ((0, 0), (0, 1), (1, 0), (1, 1))] == [4, 3, 1, 2]


RATED = (
    "x1",
    "Is it?",
    "A): Yes||B): No",
    "1.||It is.||So yes.",
    0,
    1,
    1,
    -0.25,
    "FALSE",
    "sqa",
    "m",
    "Mostly Supportive",
)


def test_rated_steps_keep_chain_rating_drop_and_flip(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    (kept,) = store_table(store, read_table(table(tmp_path, RATINGS, RATED, mark="\ufeff")))
    rows = read.run_scores(store, kept.run_id).set_index("metric")
    assert rows["value"].to_dict() == {"step_rating": 3.0, "step_drop": -0.25, "step_flip": 0.0}
    assert set(rows["step"]) == {1}
    (item,) = read.get_suite(store, read.get_run(store, kept.run_id)["suite"]).items
    assert [step.text for step in item.steps] == ["1.", "It is.", "So yes."]
    assert (item.answer, item.category, item.meta["predicted"]) == ("A): Yes", "sqa", "B): No")
    odd = table(tmp_path, RATINGS, (*RATED[:4], "0000000009", "7", *RATED[6:]))
    (item,) = next(
        iter(read_ratings(read_table(odd)).values())
    )  # an option that is not there is none
    assert (item.answer, item.meta["predicted"]) == (None, None)


@pytest.mark.parametrize(
    ("header", "rows", "why"),
    [
        (("a", "b"), ((1, 2),), "lacks the columns"),
        (BREAKDOWN[:-1], ((1,) * 6,), "lacks the columns total"),
        (BREAKDOWN, (), "no row"),
        (BREAKDOWN, (("m", "h", 1, 1, 1, 1, 5),), "not the sum"),
        (BREAKDOWN, (("m", "h", "-1", 1, 1, 1, 2),), "whole number"),
        (BREAKDOWN, (("m", "h", 1, 1, 1, 3),), "6 cells for 7"),
        (BREAKDOWN, (("\t", "h", 1, 1, 1, 1, 4),), "printable"),
        (CONFUSION, (("h", 999_999_999, 999_999_999, 0, 0, 0),), "more than"),
        (CONFUSION, (("OVERALL", 4, 1, 1, 1, 1),), "no response"),
        (BREAKDOWN, (("m", "h", 0, 0, 0, 0, 0),), "no response"),
        (
            BREAKDOWN,
            (("m", "h", 1, 0, 0, 0, 1), ("m", "h", 2, 0, 0, 0, 2)),
            ":3: hint_type: 'h' of 'm' stands twice",
        ),
        (RATINGS, ((*RATED[:6], 3, *RATED[7:]),), "3 steps"),
        (RATINGS, ((*RATED[:-1], "Great"),), "rating: must be one of"),
        (RATINGS, ((*RATED[:8], "maybe", *RATED[9:]),), "flip: must"),
        (RATINGS, ((*RATED[:7], "nan", *RATED[8:]),), "dp: must"),
    ],
)
def test_a_table_of_another_kind_is_refused(
    header: tuple[str, ...], rows: tuple[tuple[object, ...], ...], why: str, tmp_path: Path
) -> None:
    with pytest.raises(SuiteError, match=why):
        store_table(Store(tmp_path / "store"), read_table(table(tmp_path, header, *rows)))


def test_the_command_stores_study_and_tables(tmp_path: Path) -> None:
    files = [
        *map(str, written(tmp_path, study())),
        str(table(tmp_path, CONFUSION, ("a", 2, 1, 1, 0, 0))),
    ]
    first = CliRunner().invoke(app, ["unfaithfulness", "import", *files])
    again = CliRunner().invoke(app, ["unfaithfulness", "import", *files])
    assert (first.exit_code, again.exit_code) == (0, 0)
    assert (
        first.output.count("Stored: run import-") == 3
        and again.output.count("In the store already: run import-") == 3
    )
    (tmp_path / "base.json").write_text("{}")
    refused = CliRunner().invoke(app, ["unfaithfulness", "import", *files])
    assert isinstance(refused.exception, SuiteError) and read.get_store_totals(Store())["runs"] == 3


def test_tables_of_another_kind_are_named_and_left_out(tmp_path: Path) -> None:
    other = str(table(tmp_path, ("model", "rate"), ("m", 0.5)).rename(tmp_path / "other.csv"))
    known = str(table(tmp_path, CONFUSION, ("a", 2, 1, 1, 0, 0)))
    beside = CliRunner().invoke(app, ["unfaithfulness", "import", other, known])
    assert beside.exit_code == 0 and beside.output.count("Stored: run import-") == 1
    assert "Left out:" in beside.output and "other.csv" in beside.output
    none = CliRunner().invoke(app, ["unfaithfulness", "import", other, other])
    assert none.exit_code == 2 and "Stored" not in none.output
    alone = CliRunner().invoke(app, ["unfaithfulness", "import", other])
    assert isinstance(alone.exception, SuiteError)


@pytest.mark.soak
def test_items_are_counted_once_however_many_scorers_a_run_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model with detectors and a judge has two scorers; its five rows are five items, all of them
    done."""
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path / "store"))
    tuned = store_study(Store(), read_study(written(tmp_path, study())))[-1].run_id
    report = build_report(Store(), tuned)
    assert (len(report["scorers"]), report["items_done"], report["items_total"]) == (2, 5, 5)
    assert "10 of 10" in CliRunner().invoke(app, ["runs"]).output
