"""A store full of attacks: in ids, questions, chains, replies, tags, suite and model names."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import cotlab
from cotlab.core.labels import Label
from cotlab.core.types import Item, ModelRef, Step, Suite
from cotlab.reliability.policy import DEFAULT_DOMAIN, Policy, Thresholds
from cotlab.review.labelling.queue import make_queue
from cotlab.review.release.calibrate import calibrate_runs, roll_back_calibrator
from cotlab.review.release.decide import decide_run, set_policy
from cotlab.review.release.drift import measure_drift, store_drift_check
from cotlab.store.database import Store
from tests.support.stores import add_run, composite

HOST = "evil.example"
SCRIPT = "<script>window.hacked=1</script>"
IMAGE = f"<img src=x onerror=window.hacked=1><img src=//{HOST}/i.png>"
LINKS = (
    f"[x](https://{HOST}/a) ![x](https://{HOST}/b.png) <https://{HOST}/c> https://{HOST}/d"
    f" www.{HOST}/e a@{HOST}"
)
TAGGED = f'<a href="https://{HOST}/f">x</a><b>bold</b><br>'
WORDS = "**bold** :red[no] :material/home: $\\frac{1}{2}$ `code` # h | a | b |"
SQL = "'; DROP TABLE runs; --"
ALL = " ".join((SCRIPT, IMAGE, LINKS, TAGGED, WORDS, SQL, "\u202e"))
RAW = (
    "<script",
    "<img",
    "<a href",
    "](https:",
    f"://{HOST}",
    f"www.{HOST}",
    f"a@{HOST}",
    ":material/home:",
    ":red[",
)
"""What no Markdown of a page may hold as it is. (Words as_code escapes differ from these in every
case.)"""
FORMULAS = (
    '=HYPERLINK("https://evil.example")',
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
)


def suite() -> Suite:
    """Return questions with attacks in every field, each first once so that none is cut off."""
    fronts = (SCRIPT, IMAGE, LINKS, TAGGED, WORDS, FORMULAS[0])
    items = [
        Item(
            f"{front} i{i}",
            f"{front} {ALL} What is 1 + {i}?",
            f"{front} {1 + i}",
            (
                Step(0, f"{front} {ALL} so 1 + {i} = {1 + i}."),
                Step(1, f"{ALL} The answer is {1 + i}."),
            ),
            f"{front} c{i % 2}",
            {"x": ALL, "first_mistake": None if i % 2 else 0},
        )
        for i, front in enumerate(fronts)
    ]
    return Suite.from_items(f"{SCRIPT}{LINKS}", items)


def judged(folder: Path, n: int = 60) -> list[str]:
    """Store two runs with a composite on hostile items, and hostile raters; return the runs' ids.

    Their names, notes, queues and reasons attack too, and so do those of a fit, decisions, a
    policy and a drift check.
    """
    store, runs = Store(folder), ["run-1", "run-2"]
    fronts = (SCRIPT, IMAGE, LINKS, TAGGED, WORDS, FORMULAS[0])
    for k, run in enumerate(runs):
        items = [
            Item(
                f"{fronts[i % 6]} i{i}",
                f"{ALL} {run} {i}",
                ALL,
                (Step(0, ALL),),
                f"{fronts[i % 2]} c",
            )
            for i in range(n)
        ]
        told = Suite.from_items(f"{SCRIPT}{LINKS}{k}", items)
        ended = []
        for i, item in enumerate(told.items):
            value = None if i == 0 else (i % 10 + 0.5 - 3 * k * (i % 10 > 4)) / 10
            ended.append(composite(item, value, dict.fromkeys("CRVDF", value), reason=ALL))
        labels = [
            Label(
                f"{run} {i} {rater}",
                run,
                item.id,
                rater,
                "acceptable" if i % 10 > 4 + (i % 3) * (i % 2) - j else "not_acceptable",
                True,
                datetime.now(UTC),
                ("other",),
                ALL,
                flagged=i == 1,
            )
            for i, item in enumerate(told.items)
            for j, rater in enumerate((f"{SCRIPT} ann", f"{LINKS} bob"))
            if i % 2 or not j
        ]
        models = {"subject": ModelRef("echo", f"{IMAGE}{LINKS}", form="continuation")}
        add_run(store, run, told, ended, models=models, tags={SCRIPT: ALL}, note=ALL, labels=labels)
        places = [(run, item.id, ALL) for item in told.items[:3]]
        make_queue(
            store, f"{fronts[k]} {ALL}", places, author=ALL, kind=("label", "adjudication")[k]
        )
    calibrate_runs(store, runs[:1], author=f"{IMAGE} fitted", note=ALL, method="platt", domain=True)
    roll_back_calibrator(store, 1, author=ALL, reason=ALL)
    domain = items[0].category
    set_policy(
        store,
        Policy({DEFAULT_DOMAIN: Thresholds(0.3, 0.5), domain: Thresholds(0.2, 0.4)}),
        author=LINKS,
        reason=ALL,
    )
    for run in runs:
        decide_run(store, run, author=f"{TAGGED} decided")
    check = measure_drift(store, runs[:1], runs[1:], author=ALL, permutations=1999)
    store_drift_check(store, check)
    return runs


def filled(folder: Path, *scorers: str) -> list[str]:
    """Store two runs on that suite, with hostile model and tags, and return their ids."""
    store = Store(folder)
    found = []
    for i, chain in enumerate(("reference", "own")):
        done = cotlab.run_suite(
            suite(),
            store=folder,
            provider="echo",
            model="echo",
            scorer=list(scorers),
            chain=chain,
            tag={f"{SCRIPT}{i}": ALL},
        )
        found.append(done.run_id)
    with store.writing() as connection:
        for run, plan in connection.execute("SELECT id, plan FROM runs").fetchall():
            told = json.loads(plan)
            told["models"]["subject"]["name"] = f"{IMAGE}{LINKS}"
            connection.execute(
                "UPDATE runs SET plan = ?, model = ?, note = ? WHERE id = ?",
                [json.dumps(told), f"{IMAGE}{LINKS}", ALL, run],
            )
    return found
