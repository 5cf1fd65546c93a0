"""Make a store of ten million scores in 1,001 runs, for ``pages.py`` and for measuring by hand.

``python benchmarks/big_store.py --store FOLDER [--scale 0.01]`` runs a few items for real in
``FOLDER/template`` (a minute) and copies their rows inside DuckDB, so that ``FOLDER/big`` stands
within minutes; ``FOLDER/small`` has the same runs of 300 items, to compare with. A store that is
complete is left as it is; half a store is made anew. Then it prints what ends a run of that size:
the summary and the report, each in a process of its own, with its processor seconds and its memory.

- ``ablation``: 100,000 items in three modes, about 3 million scores;
- ``everything``: 20,000 items with all of phase 3, mediation and unfaithfulness, about 6 million;
  2,000 of them are labelled by two raters, and a calibrator is fitted on the labels;
- ``other``: 20,000 items of the first run's suite, to compare with it;
- 998 runs of 7 items each.

Scores are those of the real items under new ids. So that a statistic does not meet the same few
values again and again, a share is moved by up to a thousandth, some answers are turned round, and
what needs a model that embeds gets made-up values: nothing in such a store means anything.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cotlab.core.labels import FAILURE_MODES, Label
from cotlab.core.types import Item, Suite
from cotlab.store import labels, read, write
from cotlab.store.attached import Attached
from cotlab.store.database import Store
from cotlab.store.log import open_log, transaction
from cotlab.store.older import import_tables
from cotlab.store.tables import STORED_TABLES
from pages import run_command  # beside this script

N_ABLATION, N_EVERYTHING, N_OTHER, N_SMALL_RUNS, N_SMALL_ITEMS = 100_000, 20_000, 20_000, 998, 7
N_TEMPLATE, N_TEMPLATE_INNER, N_COMPARED, LABEL_SHARE = 300, 24, 300, 0.1
BATCH_RUNS = 100
"""Runs that are written in one transaction."""
ABLATION = ("--scorer=ablation", "--mode=corrupt", "--mode=paraphrase", "--mode=remove")
TEMPLATES: dict[str, tuple[str, ...]] = {
    "ablation": ("--provider=echo", "--model=echo", f"--limit={N_TEMPLATE}", *ABLATION),
    "everything": (
        *("--model=faithful-a", f"--limit={N_TEMPLATE_INNER}", "--profile=phase3"),
        *("--embedder=none", "--scorer=mediation", "--scorer=unfaithfulness"),
        *("--scorer=robustness", *ABLATION),
    ),
}
"""Options of the runs that are copied."""
MADE_UP_SCORERS = ("composite", "consistency", "diversity", "robustness")
"""Scorers whose undefined scores get a value."""
TURNED_METRICS = ("answer_change", "baseline_correct", "perturbed_answer_change", "answer_correct")
"""Metrics of 0 and 1 of which one in five is turned round."""
_SCORES_SQL = """
    INSERT INTO scores
    WITH copies AS (
        SELECT s.* EXCLUDE (run), c.copy, hash(s.item_id, s.metric, s.facet, s.step, s.sample,
               c.copy, $run) % 1000003 / 1000003.0 AS draw
        FROM range($n_copies) AS c(copy), (SELECT * FROM scores WHERE run = $template) AS s
        WHERE c.copy * $n_template + (SELECT position FROM template_items t
                                      WHERE t.id = s.item_id) < $n_items
    )
    SELECT $run, scorer, metric, item_id || '-' || copy, step, sample, facet,
           CASE WHEN value IS NULL AND list_contains($made_up, scorer) THEN draw
                WHEN list_contains($turned, metric) AND draw < 0.2 THEN 1 - value
                WHEN value = floor(value) THEN value
                ELSE value * (1 - draw / 1000) END,
           CASE WHEN list_contains($made_up, scorer) THEN 'ok' ELSE status END,
           CASE WHEN list_contains($made_up, scorer) THEN NULL ELSE reason END,
           where_lo, where_hi, list_transform(evidence, lambda key: sha256(key || $run || copy))
    FROM copies
    """
_ENDED_SQL = """
    INSERT INTO ended
    SELECT $run, scorer, item || '-' || copy, version, params_digest, 0, 0, ended_at
    FROM range($n_copies) AS c(copy), (SELECT * FROM ended WHERE run = $template) AS e
    WHERE copy * $n_template + (SELECT position FROM template_items t
                                WHERE t.id = e.item) < $n_items
    """
FINISH = """
import json, sys, time
from pathlib import Path
from cotlab.analysis import report
from cotlab.run.summary import summarise
from cotlab.store import read
from cotlab.store.database import Store
import scipy.stats, statsmodels.api
store, run, what = Store(Path(sys.argv[1])), sys.argv[2], sys.argv[3]
def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1e3 for line in lines if line.startswith("VmHWM"))
before, wall, cpu = peak(), time.perf_counter(), time.process_time()
if what == "summary":
    summarise(store, run, read.plan_from_row(read.get_run(store, run)))
else:
    report.write_reports(store, run, store.folder / "reports" / run)
print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu, peak() - before]))
"""


@dataclass(frozen=True)
class Copies:
    """A run to be made."""

    name: str
    """Its id."""
    template: str
    """Run whose rows are copied."""
    suite: Suite
    """Its suite."""
    n_items: int
    """Items of the suite that it scored, the first ones."""


def make_template(folder: Path) -> Store:
    """Run the few items whose rows are copied, where that was not done."""
    store = Store(folder)
    problems = folder / "problems.jsonl"
    if not problems.exists():
        folder.mkdir(parents=True, exist_ok=True)
        run_command(
            folder,
            *("suites", "make", "wordproblems", f"--items={N_TEMPLATE}"),
            f"--output={problems}",
        )
    done = set(read.list_runs(store, "done")["id"])
    for name, options in TEMPLATES.items():
        if name not in done:
            run_command(folder, "run", f"--task-suite={problems}", *options, f"--run-id={name}")
    return store


def make_suite(name: str, template: Suite, n_template: int, n_items: int) -> Suite:
    """Return a suite of copies of the first items, each copy of all of them after the other."""
    first_items = template.items[:n_template]
    n_copies = -(-n_items // n_template)
    items = [
        Item(f"{item.id}-{k}", item.question, item.answer, item.steps, item.category, item.meta)
        for k in range(n_copies)
        for item in first_items
    ]
    return Suite.from_items(name, items[:n_items])


def copy_run(connection: Any, row: dict[str, Any], copies: Copies, n_template: int) -> None:
    """Make a run of copies of the one with this row."""
    plan = read.plan_from_row(row)
    limit = None if copies.n_items == len(copies.suite.items) else copies.n_items
    plan = replace(plan, suite=copies.suite.name, suite_digest=copies.suite.digest, limit=limit)
    write.add_run(
        connection,
        copies.name,
        plan,
        config=json.loads(row["config"]),
        code_version="benchmark",
        output=str(Path(row["output"]).with_name(copies.name)),
        redacted=False,
        n_items=copies.n_items,
    )
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE template_items AS SELECT i.id, i.position FROM items i JOIN"
        " runs r ON r.suite = i.suite WHERE r.id = ?",
        [copies.template],
    )
    arguments = {
        "run": copies.name,
        "template": copies.template,
        "n_copies": -(-copies.n_items // n_template),
        "n_template": n_template,
        "n_items": copies.n_items,
    }
    lists = {"made_up": list(MADE_UP_SCORERS), "turned": list(TURNED_METRICS)}
    connection.execute(_SCORES_SQL, {**arguments, **lists})
    connection.execute(_ENDED_SQL, arguments)
    for table in ("estimates", "constants"):
        connection.execute(
            f"INSERT INTO {table} SELECT ?, * EXCLUDE (run) FROM {table} WHERE run = ?",
            [copies.name, copies.template],
        )
    write.set_status(connection, copies.name, "done")


def make_labels(connection: Any, run: str, n_items: int) -> list[Label]:
    """Return labels of two raters on random items of a run, better where r_raw is higher."""
    now = datetime.now(UTC)
    rows = connection.execute(
        "SELECT item_id, value FROM scores WHERE run = ? AND metric = 'r_raw' ORDER BY"
        " hash(item_id) LIMIT ?",
        [run, n_items],
    ).fetchall()
    found = []
    for k, (item_id, value) in enumerate(rows):
        for rater in ("ada", "ben"):
            is_good = (value > (k % 7) / 10) != (rater == "ben" and k % 10 == 0)
            found.append(
                Label(
                    f"{item_id}-{rater}",
                    run,
                    item_id,
                    rater,
                    "acceptable" if is_good else "not_acceptable",
                    is_good,
                    now,
                    () if is_good else (FAILURE_MODES[k % len(FAILURE_MODES)],),
                )
            )
    return found


def make_store(folder: Path, template: Store, sizes: tuple[int, int, int], n_small: int) -> None:
    """Make a store with runs of these sizes (ablation, everything, other) and small ones."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("cotlab.duckdb", "log.sqlite"):
        shutil.copy(template.folder / name, folder / name)
    store = Store(folder)
    n_ablation, n_everything, n_other = sizes
    problems = read.get_suite(template, read.get_run(template, "ablation")["suite"])
    outer = make_suite("outer", problems, N_TEMPLATE, n_ablation)
    inner = make_suite("inner", problems, N_TEMPLATE_INNER, n_everything)
    few = make_suite("few", problems, N_TEMPLATE, N_SMALL_ITEMS)
    runs = [
        *(Copies(f"small-{k}", "template-ablation", few, N_SMALL_ITEMS) for k in range(n_small)),
        Copies("other", "template-ablation", outer, n_other),
        Copies("everything", "template-everything", inner, n_everything),
        Copies("ablation", "template-ablation", outer, n_ablation),
    ]
    with store.writing() as connection:
        for name in TEMPLATES:
            rename_run(connection, name, f"template-{name}")
        for suite in (few, inner, outer):
            write.add_suite(connection, suite)
    rows = {f"template-{name}": read.get_run(template, name) for name in TEMPLATES}
    for batch in (runs[start : start + BATCH_RUNS] for start in range(0, len(runs), BATCH_RUNS)):
        with store.writing() as connection:
            for copies in batch:
                n_template = N_TEMPLATE_INNER if copies.suite is inner else N_TEMPLATE
                copy_run(connection, rows[copies.template], copies, n_template)
    with store.writing() as connection:
        n_labelled = max(N_COMPARED, int(n_everything * LABEL_SHARE))
        labels.add_labels(connection, make_labels(connection, "everything", n_labelled))
        for name in TEMPLATES:
            drop_run(connection, f"template-{name}")
    record_copy(store)


def record_copy(store: Store) -> None:
    """Bring the rows that were made in the copy alone into the log, and make the copy again."""
    began = time.perf_counter()
    with (
        closing(open_log(store.log_path)) as log,
        closing(Attached(store.path, read_only=True)) as attached,
        transaction(log, "the log"),
    ):
        for table in STORED_TABLES:
            log.execute(f"DELETE FROM {table}")
        import_tables(log, attached.connection)
    print(f"{store.folder}: brought forward in {time.perf_counter() - began:.0f} s", flush=True)
    began = time.perf_counter()
    store.rebuild()
    print(f"{store.folder}: copy made again in {time.perf_counter() - began:.0f} s", flush=True)


def rename_run(connection: Any, before: str, after: str) -> None:
    """Give a run another id."""
    connection.execute("UPDATE runs SET id = ? WHERE id = ?", [after, before])
    for table in ("scores", "ended", "estimates", "constants", "run_results"):
        connection.execute(f"UPDATE {table} SET run = ? WHERE run = ?", [after, before])


def drop_run(connection: Any, name: str) -> None:
    """Drop the rows of a run."""
    connection.execute("DELETE FROM runs WHERE id = ?", [name])
    for table in ("scores", "ended", "estimates", "constants", "run_results"):
        connection.execute(f"DELETE FROM {table} WHERE run = ?", [name])


def finish_run(store: Path, run: str) -> None:
    """Print what the summary and the report of a run cost."""
    for what in ("summary", "report"):
        done = subprocess.run(
            [sys.executable, "-c", FINISH, str(store), run, what], capture_output=True, text=True
        )
        if done.returncode:
            raise SystemExit(f"{what} of {run}\n{done.stderr[-2000:]}")
        wall_s, cpu_s, megabytes = json.loads(done.stdout.splitlines()[-1])
        print(
            f"| {store.name} | {run} | {what} | {wall_s:.1f} s | {cpu_s:.1f} s |"
            f" {megabytes:.0f} MB |",
            flush=True,
        )


def main() -> None:
    """Make the stores where there are none, and print what ends their runs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", type=Path, default=Path("benchmark-big-store"))
    parser.add_argument("--scale", type=float, default=1.0, help="1: ten million scores")
    parser.add_argument("--finish", action="store_true", help="only print what ends the runs")
    options = parser.parse_args()
    folder: Path = options.store.resolve()
    template = make_template(folder / "template")
    n_small = max(2, round(N_SMALL_RUNS * options.scale))
    big = tuple(
        max(N_COMPARED, round(n * options.scale)) for n in (N_ABLATION, N_EVERYTHING, N_OTHER)
    )
    stores = {"small": ((N_COMPARED,) * 3, 2), "big": (big, n_small)}
    for name, (sizes, n_small_runs) in stores.items():
        began = time.perf_counter()
        complete = folder / name / "complete"
        if not complete.exists():
            make_store(folder / name, template, sizes, n_small_runs)
            complete.touch()
            options.finish = True
        totals = read.get_store_totals(Store(folder / name))
        print(f"{folder / name}: {totals} in {time.perf_counter() - began:.0f} s", flush=True)
    if options.finish:
        print("| store | run | what ends it | seconds | CPU | memory |\n|---|---|---|---|---|---|")
        for name in stores:
            for run in ("everything", "ablation", "other"):
                finish_run(folder / name, run)
            try:
                run_command(folder / name, "calibrate", "everything")
            except SystemExit as error:  # made-up labels may not give one: Calibration says so too
                print(error, file=sys.stderr)


if __name__ == "__main__":
    main()
