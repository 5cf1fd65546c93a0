"""The steps of chains with their features and labels: the data of the hazard of a mistake."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from cotlab.core.registry import SCORERS
from cotlab.reliability.combine import class_bound_features
from cotlab.review.labelling.judged_steps import load_judged_steps
from cotlab.review.labelling.truth import load_truth
from cotlab.stats.ranking import NO_MISTAKE
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.store.item_metadata import load_item_metadata
from cotlab.text.chain_features.steps import STEP_FEATURES, step_features

ANSWER_FEATURE = "answer_is_wrong"
"""1 at each step of a chain whose answer is wrong, 0 where it is right."""
NOT_JUDGED_REASON = "nobody judged the steps for the first mistake"
NO_STEPS_REASON = "the chain has no steps that can be read"
SAME_CHAIN_REASON = "the chain is another run's too, with the same label"
"""Why a chain is no label of the place of its first mistake, or no further one."""
MIN_MEASURED_SHARE = 0.5
"""Share of the labelled chains that a scorer must have measured for its scores to be features."""


class ChainContent(NamedTuple):
    """What the features of the steps of a chain are computed from."""

    question: str
    """The question."""
    steps: Sequence[str]
    """Texts of the steps."""
    domain: str
    """The domain of the chain."""
    answer_correct: bool | None = None
    """Whether the answer is right; None where that is not known."""
    scores: StepValues = {}
    """What scorers measured of the steps."""


_CHAIN_COLUMNS = ["run", "item_id", "cluster", "domain", "first_wrong", "answer_correct"]


@dataclass(frozen=True, slots=True)
class JudgedChains:
    """Chains as features of their steps, and where people saw their first mistake."""

    chains: pd.DataFrame
    """A row each chain: ``run, item_id, cluster`` (the question), ``domain`` (the item's category,
    else the name of its suite), ``first_wrong`` (int from 0, ``NO_MISTAKE`` where no step is wrong)
    and ``answer_correct`` (True, False or None)."""
    steps: pd.DataFrame
    """A row each step, in the order of the chains: ``chain`` (position in ``chains``), ``step``
    (from 0), ``domain``, ``STEP_FEATURES``, ``ANSWER_FEATURE`` and ``measured_features``; NaN
    where there is no value."""
    measured_features: tuple[str, ...]
    """Features of steps that scorers measured, of most of the chains."""
    class_bound: Mapping[str, str]
    """Others that are missing in one class more than in the other → both shares."""
    n_left_out_by_reason: Mapping[str, int]
    """Chains that are left out."""


def load_judged_chains(store: Store, runs: Sequence[str]) -> JudgedChains:
    """Return the chains of runs whose steps were judged, with the features of the steps.

    Raises
    ------
    UnknownName
        If the store has no such run.
    """
    truth = load_truth(store, runs)
    judged = truth[truth["steps_judged"]]
    chains, contents, n_left_out = _chain_rows(store, judged, _question_by_item(store, runs))
    n_left_out[NOT_JUDGED_REASON] = len(truth) - len(judged)
    n_measured = Counter(name for content in contents for name in content.scores)
    is_measured = pd.DataFrame([dict.fromkeys(content.scores, 1.0) for content in contents])
    is_sound = chains["first_wrong"] == NO_MISTAKE
    class_bound = class_bound_features(is_measured, is_sound, sorted(n_measured))
    measured_features = tuple(
        name
        for name in sorted(n_measured)
        if n_measured[name] >= MIN_MEASURED_SHARE * len(chains) and name not in class_bound
    )
    return JudgedChains(
        chains,
        step_frame(contents, measured_features),
        measured_features,
        class_bound,
        {reason: n for reason, n in n_left_out.items() if n},
    )


def _question_by_item(store: Store, runs: Sequence[str]) -> dict[tuple[str, str], str]:
    items = load_item_metadata(store, runs, ())
    return {(row["run"], row["item_id"]): row["question"] for row in items.to_dict("records")}


def _chain_rows(
    store: Store, judged: pd.DataFrame, questions: Mapping[tuple[str, str], str]
) -> tuple[pd.DataFrame, list[ChainContent], Counter[str]]:
    """Return the table of chains, their contents, and how many chains are left out."""
    steps_by_item = load_judged_steps(
        store, list(zip(judged["run"], judged["item_id"], strict=True))
    )
    chains: list[dict[str, Any]] = []
    contents: list[ChainContent] = []
    n_left_out: Counter[str] = Counter()
    known_chains = set()
    scores_by_run: dict[str, Mapping[str, StepValues]] = {}
    for row in judged.to_dict("records"):
        key = (row["run"], row["item_id"])
        texts = steps_by_item.get(key, ())
        first_wrong = NO_MISTAKE if row["first_wrong_step"] is None else row["first_wrong_step"]
        is_known = (questions[key], texts, first_wrong) in known_chains
        if is_known or not texts or first_wrong >= len(texts):
            n_left_out[SAME_CHAIN_REASON if is_known else NO_STEPS_REASON] += 1
            continue
        known_chains.add((questions[key], texts, first_wrong))
        domain = row["domain"] or row["source"]
        if row["run"] not in scores_by_run:
            scores_by_run[row["run"]] = load_step_scores(store, row["run"])
        scores = scores_by_run[row["run"]].get(row["item_id"], {})
        contents.append(ChainContent(questions[key], texts, domain, row["answer_correct"], scores))
        chains.append({**row, "domain": domain, "first_wrong": int(first_wrong)})
    return pd.DataFrame(chains, columns=_CHAIN_COLUMNS), contents, n_left_out


def step_frame(
    chains: Sequence[ChainContent], measured_features: Sequence[str] = ()
) -> pd.DataFrame:
    """Return the features of the steps of chains, as ``JudgedChains.steps``."""
    rows = []
    for position, content in enumerate(chains):
        is_right = content.answer_correct
        shared = {
            "chain": position,
            "domain": content.domain,
            ANSWER_FEATURE: None if is_right is None else not is_right,
        }
        rows += [
            {"step": index, **shared, **features, **measured_values(content.scores, index)}
            for index, features in enumerate(step_features(content.question, content.steps))
        ]
    numeric_columns = (ANSWER_FEATURE, *STEP_FEATURES, *measured_features)
    frame = pd.DataFrame(rows, columns=["chain", "step", "domain", *numeric_columns])
    return frame.astype(dict.fromkeys(numeric_columns, float))


StepValues = Mapping[str, Mapping[int | None, float]]
"""Name of a feature → step (from 0; None for every other step of the chain) → value."""
STEP_METRICS: Mapping[str, Mapping[str, str]] = {"link_support": {"link": "forward"}}
"""Scores of steps that are features → what their facet must have."""
_UNNAMED_FACETS = ("chain", "link")


def load_step_scores(
    store: Store, run: str, items: Sequence[str] | None = None
) -> Mapping[str, StepValues]:
    """Return what a run measured of the steps of its items.

    Parameters
    ----------
    store : Store
    run : str
    items : sequence of str, optional
        Only these items.

    Returns
    -------
    dict
        Item id → values. A metric that places the first mistake is two features: its name (1 at
        the step that it names, else 0), and ``NAME: any`` (1 at every step where it names one). A
        score without a value is left out.
    """
    plan = read.plan_from_row(read.get_run(store, run))
    cards = [
        card
        for name in {spec.name for spec in plan.scorers if spec.name in SCORERS}
        for card in SCORERS[name].cards
    ]
    none_reasons = {card.name: card.none_reason for card in cards if card.none_reason}
    metrics = [*none_reasons, *(card.name for card in cards if card.name in STEP_METRICS)]
    if not metrics:
        return {}
    scores = read.select_scores(store, run, metrics=metrics, items=items, with_evidence=False)
    values: dict[str, dict[str, dict[int | None, float]]] = {}
    for row in scores.to_dict("records"):
        metric, facet = row["metric"], json.loads(row["facet"])
        name = _feature_name(metric, facet)
        features = values.setdefault(row["item_id"], {})
        if metric in none_reasons:
            is_none = row["reason"] == none_reasons[metric]
            if row["status"] == "ok" or is_none:
                features[name] = {None: 0.0} | ({} if is_none else {int(row["value"]): 1.0})
                features[f"{name}: any"] = {None: float(not is_none)}
        elif row["status"] == "ok" and STEP_METRICS[metric].items() <= facet.items():
            features.setdefault(name, {})[int(row["step"])] = float(row["value"])
    return values


def measured_values(values: StepValues, step: int) -> dict[str, float | None]:
    """Return the features of one step; None where a score has no value."""
    return {name: by_step.get(step, by_step.get(None)) for name, by_step in values.items()}


def _feature_name(metric: str, facet: Mapping[str, str]) -> str:
    """Return the metric with what distinguishes it: critic_step verifier=openai/gpt."""
    details = [f"{k}={v}" for k, v in sorted(facet.items()) if k not in _UNNAMED_FACETS]
    return " ".join([metric, *details])
