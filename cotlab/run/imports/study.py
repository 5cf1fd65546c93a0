"""Store published studies and tables of unfaithfulness as runs, one for each model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from cotlab.core.keys import digest
from cotlab.core.registry import SCORERS
from cotlab.core.types import Item, ModelRef, Plan, Score, ScorerSpec, Suite
from cotlab.metrics.judge import cards as cards_judge
from cotlab.metrics.kit import model_steps
from cotlab.metrics.ratings import rating_scores
from cotlab.metrics.unfaithfulness import cards
from cotlab.run.imports.mediation import COUNTED, PROVIDER, ImportedRun
from cotlab.run.plan import code_version, params_digest
from cotlab.run.summary import summarise
from cotlab.store import read, write
from cotlab.store.database import Store
from cotlab.suites.importers.study import State, Study
from cotlab.suites.importers.tables import Cell, Table, read_counts, read_ratings

COMBINED = "combined"
"""The mean of all detectors of a row, where there are two or more."""
NAMES = {"early_probe": "early_knowledge"}
PUBLISHED = "published"
UNFAITHFULNESS, JUDGE = "unfaithfulness", "judge"
Scored = Mapping[str, Mapping[str, tuple[Score, ...]]]
"""Scorer → item id → scores."""


class Import(NamedTuple):
    """One run to import: suite, model, scores by scorer and item, tags and a note."""

    suite: Suite
    """The items."""
    model: str
    """Name of the model."""
    scores: Scored
    """Scores by scorer and item."""
    tags: Mapping[str, str]
    """Tags of the run."""
    note: str
    """Message that is stored with the run."""


def store_study(store: Store, study: Study) -> list[ImportedRun]:
    """Keep a study as one run a model; a second time adds nothing.

    Items are the rows, under one suite for all models; a row's ``prompt_group`` names the first row
    with its prompt. Scores are as they were published, also where a detector or the judge had
    failed and the study put 0; the run's note says so.

    Returns
    -------
    list of Kept
        By epoch, the base model first.
    """
    suite = _suite(study)
    return [store_import(store, _import(suite, state)) for state in study.states]


def store_import(store: Store, imported: Import) -> ImportedRun:
    """Store an imported run under an id made from its content; a second time adds nothing."""
    content = [
        imported.suite.digest,
        imported.model,
        dict(imported.tags),
        imported.note,
        {k: dict(v) for k, v in imported.scores.items()},
    ]
    run_id = f"import-{digest(content)[:12]}"
    specs = tuple(ScorerSpec(name, _version(name), _options(name)) for name in imported.scores)
    subject = ModelRef(PROVIDER, imported.model)
    plan = Plan(
        imported.suite.name,
        imported.suite.digest,
        {"subject": subject},
        specs,
        tags=dict(imported.tags),
    )
    with store.writing() as connection:
        new = not write.has_run(connection, run_id)
        if new:
            write.add_suite(connection, imported.suite)
            write.add_run(
                connection,
                run_id,
                plan,
                config={},
                code_version=code_version(),
                output="",
                redacted=False,
                n_items=len(imported.suite.items),
            )
            ended = [
                write.Ended(spec.name, spec.version, params_digest(plan, spec, {}), item, scores)
                for spec in specs
                for item, scores in imported.scores[spec.name].items()
            ]
            write.add_ended(connection, run_id, ended)
            write.set_status(connection, run_id, "done", imported.note)
    if new or read.run_estimates(store, run_id).empty:
        summarise(store, run_id, plan)
    return ImportedRun(run_id, imported.suite.name, imported.model, new)


def _version(scorer: str) -> int:
    return int(SCORERS[scorer].version)


def _options(scorer: str) -> dict[str, Any]:
    """Return the scorer's default options, which its figures read, marked as imported."""
    return {**SCORERS[scorer].options, "imported": PUBLISHED}


def _suite(study: Study) -> Suite:
    first: dict[str, int] = {}
    items = [
        Item(
            row_id(k), prompt, None, (), meta={"prompt_group": row_id(first.setdefault(prompt, k))}
        )
        for k, prompt in enumerate(study.prompts)
    ]
    short = "".join(
        c if c.isalnum() or c in "._-" else "-" for c in study.base_model.rsplit("/", 1)[-1]
    )
    return Suite.of(f"study-{short}", items)


def row_id(row: int) -> str:
    """Return the id of the item of a row, counted from 0."""
    return f"row-{row:04d}"


def _import(suite: Suite, state: State) -> Import:
    scores: dict[str, dict[str, tuple[Score, ...]]] = {
        UNFAITHFULNESS: {
            item.id: tuple(_unfaithful(item, k, state)) for k, item in enumerate(suite.items)
        }
    }
    if state.judge:
        scores[JUDGE] = {
            item.id: tuple(_judged(item, k, state, suite)) for k, item in enumerate(suite.items)
        }
    tags = {"condition": "fine-tuned" if state.epoch else "base", "epoch": str(state.epoch)}
    return Import(suite, state.model, scores, tags, _note(state))


def _unfaithful(item: Item, row: int, state: State) -> Iterator[Score]:
    values = {
        NAMES.get(name, name): scores[row] for name, scores in sorted(state.detectors.items())
    }
    for name, value in values.items():
        yield cards.UNFAITHFULNESS.score(item, value, facet={"classifier": name})
    if len(values) > 1:
        yield cards.UNFAITHFULNESS.score(
            item, sum(values.values()) / len(values), facet={"classifier": COMBINED}
        )
    if state.responses:
        steps = model_steps(state.responses[row])
        yield from _length_scores(item, steps)
    if state.process:
        process, result = state.process[row], state.result[row]
        facet = {"keywords": PUBLISHED}
        yield cards.PROCESS_KEYWORDS.score(item, float(process), facet=facet)
        yield cards.RESULT_KEYWORDS.score(item, float(result), facet=facet)
        ratio = process / result if result else None
        yield cards.RATIO.score(
            item, ratio, facet=facet, reason=None if result else "the response has no result word"
        )


def _length_scores(item: Item, steps: Sequence[str]) -> Iterator[Score]:
    none = None if steps else "there is no chain"
    yield cards.CHAIN_CHARACTERS.score(
        item, float(len("\n".join(steps))) if steps else None, reason=none
    )
    yield cards.CHAIN_STEPS.score(item, float(len(steps)) if steps else None, reason=none)


def _judged(item: Item, row: int, state: State, suite: Suite) -> Iterator[Score]:
    yield cards_judge.SCORE.score(item, state.judge[row], facet={"judge": PUBLISHED})
    group = int(item.meta["prompt_group"].rpartition("-")[2])
    yield cards_judge.PROMPT_GROUP.score(item, float(group))


def _note(state: State) -> str:
    sentences = ["Imported: no reply stands behind these scores."]
    failed = {NAMES.get(name, name): count for name, count in state.failed.items() if count}
    for name, count in failed.items():
        sentences.append(
            f"{name} failed on {count} row(s), which the study scored 0; kept as published."
        )
    if state.judge:
        zeros = sum(score == 0 for score in state.judge)
        sentences.append(
            "The study's judge saw which response was whose, in one order, and its failures were"
            f" scored 0 ({zeros} rows are 0); kept as published."
        )
    if len(set(state.base_responses.values())) > 1:
        sentences.append(
            "The comparisons hold different responses of this model; the lengths are of one of"
            " them."
        )
    return " ".join(sentences)


_COUNTED = (
    "Imported counts: one item stands for one response of the count, in no order. Only responses"
    " that gave in to their hint were counted."
)
_RATED = "Imported ratings: no reply stands behind them."


def store_table(store: Store, table: Table) -> list[ImportedRun]:
    """Keep a published table as one run a model; a second time adds nothing.

    Counts become as many items, of the hint's category, with the score of each classifier (0
    faithful, 1 unfaithful): rates, agreement and paired tests over them are those of the counts.
    Ratings become items with their chains.
    """
    if table.kind == "ratings":
        return [
            store_import(store, _rated(model, items))
            for model, items in read_ratings(table).items()
        ]
    cells = read_counts(table)
    return [
        store_import(store, _counted(table, model, cells))
        for model in dict.fromkeys(cell.model for cell in cells)
    ]


def _counted(table: Table, model: str, cells: Iterable[Cell]) -> Import:
    items: list[Item] = []
    scores: dict[str, tuple[Score, ...]] = {}
    for cell in cells:
        for _ in range(cell.count if cell.model == model else 0):
            item = Item(f"response-{len(items):06d}", COUNTED, None, (), cell.hint)
            items.append(item)
            scores[item.id] = tuple(
                cards.UNFAITHFULNESS.score(item, value, facet={"classifier": name})
                for name, value in cell.scores.items()
            )
    return Import(
        Suite.of(f"hints-{table.kind}", items),
        model,
        {UNFAITHFULNESS: scores},
        {"condition": "hinted"},
        _COUNTED,
    )


def _rated(model: str, items: tuple[Item, ...]) -> Import:
    return Import(
        Suite.of("rated-steps", items),
        model,
        {"ratings": {item.id: rating_scores(item) for item in items}},
        {},
        _RATED,
    )
