"""Every stored metric of labelled chains as one number a chain, oriented: higher is sounder."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cotlab.analysis.compare import metric_cards
from cotlab.core.types import MetricCard
from cotlab.review.labelling.truth import load_truth
from cotlab.review.release.joined_runs import chains_by_run
from cotlab.stats.ranking import NO_MISTAKE
from cotlab.store import read
from cotlab.store.database import Store
from cotlab.store.item_scores import (
    ItemScores,
    load_chain_characters,
    load_item_scores,
)

LENGTH, ANSWER_CORRECT, RANDOM = "length", "answer_correct", "random"
BASELINES: Mapping[str, str] = {
    LENGTH: "the number of characters of the chain, fewer counting as sounder",
    ANSWER_CORRECT: "whether the answer is labelled as right",
    RANDOM: "a number drawn for each chain with the seed",
}
"""What every signal is compared with → what it is."""
MEASURED_LENGTH = "text_characters"
"""The metric that gives the length of a chain that a model wrote."""
KEY_COLUMNS = ["suite", "chain", "item_id"]
Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Signal:
    """One number a chain, or the step that a method names first."""

    name: str
    """Unique among the signals of an evaluation."""
    what: str
    """What it is, for people."""
    values: pd.Series
    """Value by row of the chains' table, NaN where undefined. A location is the index of the step
    from 0, ``NO_MISTAKE`` where the method names none."""
    is_location: bool = False
    """Whether ``values`` are places of a first mistake."""
    has_direction: bool = True
    """Whether the metric's card says which direction is better; else the labels decide."""
    is_baseline: bool = False
    """Whether it is one of ``BASELINES``, or a fit on what is trivial to know alone."""
    is_probability: bool = False
    """Whether it is the probability that the target is true."""


@dataclass(frozen=True, slots=True)
class LabelledChains:
    """Chains, what is known of them, and every signal on them."""

    chains: pd.DataFrame
    """One row a chain: the columns of ``load_truth`` and ``n_characters``; ``run`` is the first run
    that has the chain. Runs on the same suite's chains share a row."""
    signals: tuple[Signal, ...]
    """Baselines first, then by name. Runs that give one metric of one chain different values have
    a signal each, ``NAME [RUN]``."""
    runs: tuple[str, ...]
    """Ids of the runs."""
    model_chain_runs: tuple[str, ...] = ()
    """Runs that measure chains that their model wrote: imported labels say nothing of those."""
    signals_by_run: Mapping[str, Mapping[str, Signal]] = field(default_factory=dict)
    """Run → name → signal as that run alone measured it. A facet that one run has in one value
    only, such as a verifier, is not in the name, so that runs can be compared."""
    row_by_item: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(run, item) → row of ``chains``."""


@dataclass(frozen=True, slots=True)
class EvaluationData:
    """Labelled chains, and what is evaluated on them besides their own signals."""

    labelled: LabelledChains
    """The chains with their signals."""
    seed: int
    """Of the bootstrap."""
    fitted_signals: Mapping[str, Sequence[Signal]] = field(default_factory=dict)
    """Target → signals that were fitted on the labels of other runs."""
    notes: tuple[str, ...] = ()
    """What a reader must know of the fits."""


class _RunSignal(NamedTuple):
    """A signal as one run measured it."""

    run: str
    name: str
    """Name among all runs."""
    run_name: str
    """Name within the run."""
    signal: Signal


def load_labelled_chains(store: Store, runs: Sequence[str], *, seed: int = 0) -> LabelledChains:
    """Return the chains of runs with their labels and all signals that the runs stored.

    Parameters
    ----------
    store : Store
    runs : sequence of str
        Run ids. Runs on one suite's chains are joined by item: a critic's run adds its signals to
        the chains of the run before.
    seed : int
        Of the baseline ``random``.

    Returns
    -------
    LabelledChains

    Raises
    ------
    UnknownName
        If the store has no such run.
    """
    run_ids = tuple(dict.fromkeys(runs))
    truth = load_truth(store, run_ids)
    model_chain_runs = tuple(truth.attrs["model_chain_runs"])
    run_rows = {run: read.get_run(store, run) for run in run_ids}
    cards = metric_cards([read.plan_from_row(row) for row in run_rows.values()])
    none_reasons = sorted({card.none_reason for card in cards.values()} - {""})
    scores = load_item_scores(store, run_ids, none_reasons)
    n_characters: dict[tuple[str, str], float] = {}
    for group, (_, _, metric, _) in enumerate(scores.groups):
        if metric == MEASURED_LENGTH:
            lengths = scores.sum_up(group)
            n_characters |= {
                scores.items[item]: float(lengths.mean[item])
                for item in np.flatnonzero(lengths.is_scored)
            }
    suite_chain_runs = [run for run in run_ids if run not in model_chain_runs]
    n_characters |= load_chain_characters(store, suite_chain_runs)
    chains_of_run = chains_by_run(store, run_ids)
    truth = truth.assign(
        suite=[chains_of_run[run][0] for run in truth["run"]],
        chain=[chains_of_run[run][1] for run in truth["run"]],
        n_characters=[
            n_characters.get(key, np.nan)
            for key in zip(truth["run"], truth["item_id"], strict=True)
        ],
    )
    chains = (
        truth.sort_values("origin", key=_label_order, kind="stable")
        .drop_duplicates(KEY_COLUMNS)
        .sort_index()
        .reset_index(drop=True)
    )
    row_by_key = {
        key: row for row, key in enumerate(chains[KEY_COLUMNS].itertuples(index=False, name=None))
    }
    row_by_item = {
        (run, item): row_by_key[key]
        for run, item, key in zip(
            truth["run"],
            truth["item_id"],
            truth[KEY_COLUMNS].itertuples(index=False, name=None),
            strict=True,
        )
    }
    run_signals = list(_run_signals(scores, cards, none_reasons, row_by_item, len(chains)))
    joined = _join_runs(run_signals)
    signals_by_run: dict[str, dict[str, Signal]] = {}
    for run_signal in run_signals:
        signals_by_run.setdefault(run_signal.run, {})[run_signal.run_name] = run_signal.signal
    measured_answers = joined.pop(ANSWER_CORRECT, None)
    if measured_answers is not None and chains["answer_correct"].notna().any():
        name = f"{ANSWER_CORRECT} (measured)"
        joined[name] = replace(measured_answers, name=name)
    return LabelledChains(
        chains,
        (*_baselines(chains, measured_answers, seed), *joined.values()),
        run_ids,
        model_chain_runs,
        signals_by_run,
        row_by_item,
    )


def _label_order(origins: pd.Series) -> pd.Series:
    """Return the order in which rows of one chain are taken: a rater's label before a file's."""
    return origins.map({"raters": 0, "import": 1}).astype(float).fillna(2)


def _baselines(chains: pd.DataFrame, measured: Signal | None, seed: int) -> list[Signal]:
    """Return the baselines; where no label says whether an answer is right, the measured metric."""
    generator = random.Random(f"baseline:{seed}")  # noqa: S311 - no secret
    answers = chains["answer_correct"].map({True: 1.0, False: 0.0}).astype(float)
    what = dict(BASELINES)
    if measured is not None and not answers.notna().any():
        answers = measured.values
        what[ANSWER_CORRECT] = f"the stored metric: {measured.what}"
    values = {
        LENGTH: -chains["n_characters"].astype(float),
        ANSWER_CORRECT: answers,
        RANDOM: pd.Series([generator.random() for _ in range(len(chains))], dtype=float),
    }
    return [
        Signal(name, what[name], values[name].set_axis(chains.index), is_baseline=True)
        for name in BASELINES
    ]


def _run_signals(
    scores: ItemScores,
    cards: Mapping[str, MetricCard],
    none_reasons: Sequence[str],
    row_by_item: Mapping[tuple[str, str], int],
    n_chains: int,
) -> Iterator[_RunSignal]:
    """Yield the signals of each run: each metric and facet, and of steps also the worst one's."""
    facet_by_text = {text: dict(json.loads(text)) for *_, text in scores.groups}
    facets_by_metric: dict[str, dict[str, list[dict[str, str]]]] = {}
    groups_by_key: dict[tuple[str, str, str], list[int]] = {}
    for group, (run, _, metric, text) in enumerate(scores.groups):
        key = (run, metric, text)
        if key not in groups_by_key:
            facets_by_run = facets_by_metric.setdefault(metric, {})
            facets_by_run.setdefault(run, []).append(facet_by_text[text])
        groups_by_key.setdefault(key, []).append(group)
    # items without a row were scored after the chains were read
    chain_rows = np.array([row_by_item.get(key, -1) for key in scores.items], dtype=np.int64)
    for (run, metric, text), groups in sorted(groups_by_key.items()):
        card = cards.get(metric)
        if card is None or card.level in ("draw", "run"):
            continue
        means, lowest, highest = (np.full(n_chains, np.nan) for _ in range(3))
        none_reason = none_reasons.index(card.none_reason) if card.none_reason else None
        is_none, is_scored = np.zeros(n_chains, dtype=bool), False
        for group in groups:  # of scorers that give the same metric, the last one counts
            item_values = scores.sum_up(group)
            is_chosen = item_values.is_scored & (chain_rows >= 0)
            rows = chain_rows[is_chosen]
            is_scored |= bool(len(rows))
            for spread, values in (
                (means, item_values.mean),
                (lowest, item_values.lowest),
                (highest, item_values.highest),
            ):
                spread[rows] = values[is_chosen]
            if none_reason is not None:
                is_none[rows] |= item_values.reason[is_chosen] == none_reason
        if not is_scored:
            continue
        facets = facets_by_metric[metric]
        everywhere = [facet for run_facets in facets.values() for facet in run_facets]
        name, run_name = (
            _signal_name(metric, facet_by_text[text], others, facets[run])
            for others in (everywhere, facets[run])
        )
        sign = -1.0 if card.better == "lower" else 1.0
        means = sign * means
        means[is_none] = NO_MISTAKE
        has_direction = card.better != "neither"
        signal = Signal(name, card.formula, pd.Series(means), bool(card.none_reason), has_direction)
        yield _RunSignal(run, name, run_name, signal)
        if card.level in ("step", "span") and has_direction:
            worst = sign * (highest if card.better == "lower" else lowest)
            if not np.allclose(worst, means, equal_nan=True):
                what = f"of the worst step: {card.formula}"
                signal = Signal(f"{name}, worst step", what, pd.Series(worst))
                yield _RunSignal(run, signal.name, f"{run_name}, worst step", signal)


def _signal_name(
    metric: str,
    facet: Mapping[str, str],
    other_facets: Sequence[Mapping[str, str]],
    run_facets: Sequence[Mapping[str, str]],
) -> str:
    """Return the metric's name, with what distinguishes its facet from the metric's others.

    Whose chain is measured is in the name only where one run measures both.
    """
    pairs = ", ".join(
        f"{key}={value}"
        for key, value in sorted(facet.items())
        if any(
            other.get(key) != value for other in (run_facets if key == "chain" else other_facets)
        )
    )
    return f"{metric} ({pairs})" if pairs else metric


def _join_runs(run_signals: Sequence[_RunSignal]) -> dict[str, Signal]:
    """Return the signals of all runs by name; one a run where two give a chain other values."""
    by_name: dict[str, list[_RunSignal]] = {}
    for run_signal in run_signals:
        by_name.setdefault(run_signal.name, []).append(run_signal)
    joined: dict[str, Signal] = {}
    for name in sorted(by_name):
        values = by_name[name][0].signal.values.to_numpy()
        is_same = True
        for run_signal in by_name[name][1:]:
            other = run_signal.signal.values.to_numpy()
            is_same &= bool(np.all((values == other) | np.isnan(values) | np.isnan(other)))
            values = np.where(np.isnan(values), other, values)
        for run_signal in by_name[name]:
            joined_name = name if is_same else f"{name} [{run_signal.run}]"
            joined_values = pd.Series(values) if is_same else run_signal.signal.values
            joined[joined_name] = replace(run_signal.signal, name=joined_name, values=joined_values)
    return joined
