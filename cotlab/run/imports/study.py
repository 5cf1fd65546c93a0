"""Store published studies and tables of unfaithfulness as runs, one for each model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from cotlab.core.keys import digest
from cotlab.core.program import Scorer
from cotlab.core.registry import SCORERS
from cotlab.core.types import Item, ModelRef, Plan, Score, ScorerSpec, Suite
from cotlab.metrics.judge import cards as cards_judge
from cotlab.metrics.model_steps import model_steps
from cotlab.metrics.ratings import rating_scores
from cotlab.metrics.unfaithfulness import cards
from cotlab.run.imports.mediation import (
    COUNTED_QUESTION,
    PUBLISHED_PROVIDER,
    ImportedRun,
    ImportedScores,
    store_imported_run,
)
from cotlab.store.database import Store
from cotlab.suites.importers.study import ModelResults, Study
from cotlab.suites.importers.tables import ImportedTable, VerdictCount, read_counts, read_ratings

COMBINED_CLASSIFIER = "combined"
"""The mean of all detectors of a row, where there are two or more."""
DETECTOR_NAMES = {"early_probe": "early_knowledge"}
PUBLISHED_LABEL = "published"
UNFAITHFULNESS_SCORER, JUDGE_SCORER = "unfaithfulness", "judge"


class RunImport(NamedTuple):
    """One run to import: suite, model, scores by scorer and item, tags and a note."""

    suite: Suite
    """The items."""
    model: str
    """Name of the model."""
    scores: ImportedScores
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
    list of ImportedRun
        By training set and epoch, the base model first. Where there are several training sets,
        the tag ``training_set`` names each run's.
    """
    suite = _study_suite(study)
    has_several = len(study.training_sets) > 1
    return [
        store_import(store, _results_import(suite, model_results, name_training_set=has_several))
        for model_results in study.model_results
    ]


def store_import(store: Store, run_import: RunImport) -> ImportedRun:
    """Store an imported run under an id made from its content; a second time adds nothing."""
    suite, model, scores, tags, note = run_import
    scores_by_item = {name: dict(by_item) for name, by_item in scores.items()}
    run_id = f"import-{digest([suite.digest, model, dict(tags), note, scores_by_item])[:12]}"
    subject, specs = ModelRef(PUBLISHED_PROVIDER, model), tuple(map(_scorer_spec, scores))
    plan = Plan(suite.name, suite.digest, {"subject": subject}, specs, tags=dict(tags))
    return store_imported_run(store, run_id, suite, plan, scores, note)


def _scorer_spec(name: str) -> ScorerSpec:
    """Return a scorer with its default options, which its figures read, marked as imported."""
    scorer: Scorer = SCORERS[name]
    return ScorerSpec(name, scorer.version, {**scorer.options, "imported": PUBLISHED_LABEL})


def _study_suite(study: Study) -> Suite:
    first_row_by_prompt: dict[str, int] = {}
    prompt_groups = (
        row_id(first_row_by_prompt.setdefault(prompt, k)) for k, prompt in enumerate(study.prompts)
    )
    items = [
        Item(row_id(k), prompt, None, (), meta={"prompt_group": prompt_group})
        for k, (prompt, prompt_group) in enumerate(zip(study.prompts, prompt_groups, strict=True))
    ]
    model = study.base_model.rsplit("/", 1)[-1]
    model = "".join(
        character if character.isalnum() or character in "._-" else "-" for character in model
    )
    return Suite.from_items(f"study-{model}", items)


def row_id(row: int) -> str:
    """Return the id of the item of a row, counted from 0."""
    return f"row-{row:04d}"


def _results_import(
    suite: Suite, model_results: ModelResults, *, name_training_set: bool = False
) -> RunImport:
    rows = list(enumerate(suite.items))
    scores = {
        UNFAITHFULNESS_SCORER: {
            item.id: tuple(_unfaithfulness_scores(item, k, model_results)) for k, item in rows
        }
    }
    if model_results.judge_scores:
        scores[JUDGE_SCORER] = {
            item.id: tuple(_judge_scores(item, k, model_results)) for k, item in rows
        }
    tags = {
        "condition": "fine-tuned" if model_results.epoch else "base",
        "epoch": str(model_results.epoch),
    }
    if name_training_set and model_results.training_set:
        tags["training_set"] = model_results.training_set
    return RunImport(suite, model_results.model, scores, tags, _import_note(model_results))


def _unfaithfulness_scores(item: Item, row: int, model_results: ModelResults) -> Iterator[Score]:
    value_by_classifier = {
        DETECTOR_NAMES.get(name, name): scores[row]
        for name, scores in sorted(model_results.scores_by_detector.items())
    }
    if len(value_by_classifier) > 1:
        value_by_classifier[COMBINED_CLASSIFIER] = sum(value_by_classifier.values()) / len(
            value_by_classifier
        )
    for name, value in value_by_classifier.items():
        yield cards.UNFAITHFULNESS.score(item, value, facet={"classifier": name})
    if model_results.responses:
        yield from _length_scores(item, model_steps(model_results.responses[row]))
    if model_results.process:
        n_process, n_result = model_results.process[row], model_results.result[row]
        facet = {"keywords": PUBLISHED_LABEL}
        yield cards.PROCESS_KEYWORDS.score(item, float(n_process), facet=facet)
        yield cards.RESULT_KEYWORDS.score(item, float(n_result), facet=facet)
        ratio = n_process / n_result if n_result else None
        reason = None if n_result else "the response has no result word"
        yield cards.KEYWORD_RATIO.score(item, ratio, facet=facet, reason=reason)


def _length_scores(item: Item, steps: Sequence[str]) -> Iterator[Score]:
    n_characters = len("\n".join(steps))
    for card, n in ((cards.CHAIN_CHARACTERS, n_characters), (cards.CHAIN_STEPS, len(steps))):
        if steps:
            yield card.score(item, float(n))
        else:
            yield card.score(item, None, reason="there is no chain")


def _judge_scores(item: Item, row: int, model_results: ModelResults) -> Iterator[Score]:
    yield cards_judge.JUDGE_SCORE.score(
        item, model_results.judge_scores[row], facet={"judge": PUBLISHED_LABEL}
    )
    prompt_group = int(item.meta["prompt_group"].rpartition("-")[2])
    yield cards_judge.PROMPT_GROUP.score(item, float(prompt_group))


def _import_note(model_results: ModelResults) -> str:
    sentences = ["Imported: no reply stands behind these scores."]
    sentences += [
        f"{DETECTOR_NAMES.get(name, name)} failed on {count} row(s), which the study scored 0; kept"
        " as published."
        for name, count in model_results.n_failed_by_detector.items()
        if count
    ]
    if model_results.judge_scores:
        n_zero_scores = sum(score == 0 for score in model_results.judge_scores)
        sentences.append(
            "The study's judge saw which response was whose, in one order, and its failures were"
            f" scored 0 ({n_zero_scores} rows are 0); kept as published."
        )
    if len(set(model_results.base_responses_by_comparison.values())) > 1:
        sentences.append(
            "The comparisons hold different responses of this model; the lengths are of one of"
            " them."
        )
    return " ".join(sentences)


_COUNTS_NOTE = (
    "Imported counts: one item stands for one response of the count, in no order. Only responses"
    " that gave in to their hint were counted."
)
_RATINGS_NOTE = "Imported ratings: no reply stands behind them."


def store_table(store: Store, table: ImportedTable) -> list[ImportedRun]:
    """Keep a published table as one run a model; a second time adds nothing.

    Counts become as many items, of the hint's category, with the score of each classifier (0
    faithful, 1 unfaithful): rates, agreement and paired tests over them are those of the counts.
    Ratings become items with their chains.
    """
    if table.kind == "ratings":
        run_imports = [
            _ratings_import(model, items) for model, items in read_ratings(table).items()
        ]
    else:
        cells = read_counts(table)
        models = dict.fromkeys(cell.model for cell in cells)
        run_imports = [_counts_import(table, model, cells) for model in models]
    return [store_import(store, run_import) for run_import in run_imports]


def _counts_import(table: ImportedTable, model: str, cells: Iterable[VerdictCount]) -> RunImport:
    items: list[Item] = []
    scores: dict[str, tuple[Score, ...]] = {}
    for cell in cells:
        for _ in range(cell.count if cell.model == model else 0):
            item = Item(f"response-{len(items):06d}", COUNTED_QUESTION, None, (), cell.hint)
            items.append(item)
            scores[item.id] = tuple(
                cards.UNFAITHFULNESS.score(item, value, facet={"classifier": name})
                for name, value in cell.verdict_by_classifier.items()
            )
    suite = Suite.from_items(f"hints-{table.kind}", items)
    return RunImport(
        suite, model, {UNFAITHFULNESS_SCORER: scores}, {"condition": "hinted"}, _COUNTS_NOTE
    )


def _ratings_import(model: str, items: tuple[Item, ...]) -> RunImport:
    scores = {"ratings": {item.id: rating_scores(item) for item in items}}
    return RunImport(Suite.from_items("rated-steps", items), model, scores, {}, _RATINGS_NOTE)
