"""What differs between two runs, in one sentence, by metrics tested for what they claim."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from cotlab.analysis.compare import Comparison, compare_runs
from cotlab.analysis.plan_changes import Change, differing_facets
from cotlab.analysis.verdict.collect import failed_checks
from cotlab.analysis.verdict.measures import (
    COMPARED_MEASURES,
    MEASURES,
    MIN_ITEMS,
    READING_MEASURES,
    MeasureName,
    RunEvidence,
)
from cotlab.analysis.verdict.pair_differences import (
    OTHER_ANSWER_METRIC,
    HeadlineDifference,
    difference_text,
    headline_differences,
    with_sound_chains,
)
from cotlab.analysis.verdict.stored import stored_evidence
from cotlab.analysis.verdict.validated import load_measure_validation
from cotlab.analysis.verdict.verdicts import category_shares, category_shares_text
from cotlab.analysis.verdict.wording import capitalised, noun_count, percent_number
from cotlab.analysis.view import RunView, run_view
from cotlab.core.errors import ConfigError
from cotlab.store.database import Store

_CHAIN_TEXTS = {"own": "the model's own chains", "reference": "the suite's chains"}
MAX_SETTINGS = 3
"""Settings that the sentence names, beside the model."""


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """What a page says of two runs."""

    headline: str
    """One sentence."""
    detail: str
    """What stands below it."""
    differences: tuple[HeadlineDifference, ...]
    """The tested metrics that both runs have."""
    left_out: tuple[str, ...]
    """Metrics that both have and that stand in no headline, with the reason."""
    comparison: Comparison | None
    """The paired values of these metrics; None where both runs share none of them."""
    reason: str | None
    """Why there is no comparison."""
    unpaired: Mapping[MeasureName, str] = field(default_factory=dict)
    """How the two runs' measurements of a metric that both have differ, so that it is not compared.
    """
    lacking: Mapping[MeasureName, str] = field(default_factory=dict)
    """Id of the run that lacks a measure of faithfulness which the other one has."""
    has_opposite_kinds: bool = False
    """Whether one run's mean change of the answer is of two kinds of items, of which one lies above
    the other run's mean and one below, so that neither run is the better one in it."""


def judge_pair(store: Store, base: str, other: str, names: tuple[str, str]) -> PairVerdict:
    """Return what differs between two stored runs, over the items that both have.

    Where a check of either run's server failed, there is no comparison: its numbers would be about
    the server.

    Parameters
    ----------
    store : Store
    base, other : str
        Ids of the runs.
    names : (str, str)
        How they are called in the sentence.
    """
    refusals = [
        f"{check.reason} ({name})"
        for name, run_id in zip(names, (base, other), strict=True)
        for check in failed_checks(RunView.read(store, run_id))
    ]
    if refusals:
        headline = f"The runs cannot be compared: {refusals[0]}."
        return PairVerdict(headline, " ".join(refusals[1:]), (), (), None, refusals[0])
    metrics = [*(MEASURES[measure].metric for measure in COMPARED_MEASURES), OTHER_ANSWER_METRIC]
    try:
        results = compare_runs(store, base, [other], metrics=metrics)
    except ConfigError as error:
        headline = f"No tested metric was measured in both {names[0]} and {names[1]}."
        lacking = missing_measures(store, base, other)
        return PairVerdict(headline, "", (), (), None, str(error), lacking=lacking)
    comparison = with_sound_chains(results.comparisons[0])
    validation = load_measure_validation(str(store.folder))
    differences, left_out = headline_differences(comparison, validation)
    headline, detail = pair_sentences(differences, names)
    lacking = missing_measures(store, base, other)
    if lacks_shared_reading(differences, lacking):
        headline, detail = _unshared_sentences(headline, detail, names)
    evidence = [stored_evidence(RunView.read(store, run_id)) for run_id in (base, other)]
    n_shared = min((entry.row.n for entry in differences), default=0)
    kinds = [category_sentence(e, name, n_shared) for e, name in zip(evidence, names, strict=True)]
    settings_text = settings_sentence(comparison.changes)
    return PairVerdict(
        headline,
        " ".join(filter(None, (detail, *kinds, settings_text))),
        differences,
        left_out,
        comparison,
        None,
        unpaired_measures(store, comparison, names),
        lacking,
        has_opposite_kinds(*evidence) or has_opposite_kinds(*reversed(evidence)),
    )


def has_opposite_kinds(split: RunEvidence, other: RunEvidence) -> bool:
    """Return whether another run's mean lies between the two kinds of items of a split mean."""
    points = [kind.share.point for kind in category_shares(split)]
    mean = other.share("change")
    return bool(points) and mean is not None and min(points) < mean.point < max(points)


def lacks_shared_reading(
    differences: Sequence[HeadlineDifference], lacking: Mapping[MeasureName, str]
) -> bool:
    """Return whether two runs cannot be compared in whether the answer depends on the chain.

    It is so where neither shares such a measure with the other, and at least one has one; what else
    they share then says nothing of what their verdicts rest on.
    """
    shared = {entry.measure for entry in differences if entry.difference.point is not None}
    return shared.isdisjoint(READING_MEASURES) and not lacking.keys().isdisjoint(READING_MEASURES)


def _unshared_sentences(headline: str, detail: str, names: tuple[str, str]) -> tuple[str, str]:
    """Return the sentence of such a pair; what the others say of it stands below."""
    base, other = names
    unshared = f"{other} and {base} share no measure of whether they read their chains"
    return f"{unshared}.", f"In what both measured: {headline} {detail}".strip()


def category_sentence(evidence: RunEvidence, name: str, n_shared: int) -> str:
    """Return how a run's change of the answer differs by kind of item; "" where it does not.

    The kinds are those of the whole run, which may have more items than the other one.
    """
    kinds_text = category_shares_text(evidence)
    change = evidence.share("change")
    if not kinds_text or change is None:
        return ""
    scope = f" over all its {change.n:,} items" if change.n > n_shared else ""
    return f"The answers changed of {name} differ by kind of item{scope}: {kinds_text}."


def settings_sentence(changes: Sequence[Change]) -> str:
    """Return in which settings two runs differ, the model first; the page lists all of them."""
    if not changes:
        return "Their settings are the same."
    is_other_model = any(change.setting == "subject" for change in changes)
    others = [change.setting for change in changes if not change.setting.startswith("subject")]
    if not others:
        return "Settings differ in the model only."
    more = f" and {len(others) - MAX_SETTINGS} more" if len(others) > MAX_SETTINGS else ""
    named = [*(["the model"] if is_other_model else []), *others[:MAX_SETTINGS]]
    return f"Settings differ in {', '.join(named)}{more}."


def pair_sentences(
    differences: Sequence[HeadlineDifference], names: tuple[str, str]
) -> tuple[str, str]:
    """Return the sentence on a pair of runs, and what stands below it."""
    base, other = names
    measured = [entry for entry in differences if entry.difference.point is not None]
    if not measured:
        reasons = dict.fromkeys(str(entry.difference.reason) for entry in differences)
        headline = f"No tested metric has a value in both {base} and {other}."
        return headline, "; ".join(reasons)
    n_most = max(entry.row.n for entry in measured)
    if n_most < MIN_ITEMS:
        headline = f"{noun_count(n_most, 'item')} with a value in both runs are too few to compare."
        return headline, f"A verdict needs {MIN_ITEMS}; the figure shows what there is."
    differing = [entry for entry in measured if entry.is_beyond_chance]
    if not differing:
        texts = "; ".join(f"{entry.label}: {_points(entry)}" for entry in measured)
        headline = f"{other} and {base} do not differ beyond chance in any tested metric."
        if all(entry.untestable_reason is not None for entry in measured):
            headline = f"Whether {other} and {base} differ beyond chance cannot be tested."
        return headline, f"{texts}. What an interval includes is not ruled out."
    first = _plainest(differing, max(differing, key=lambda entry: entry.size))
    others = [entry for entry in differing if entry is not first]
    details = [f"{capitalised(first.short_label)}: {_points(first)}, paired."]
    if others:
        details.append(f"Beyond chance too: {'; '.join(map(_both_sides, others))}.")
    untestable = [entry for entry in measured if entry.untestable_reason is not None]
    same = [entry for entry in measured if entry not in differing and entry not in untestable]
    if same:
        details.append(f"No difference beyond chance: {'; '.join(map(_both_sides, same))}.")
    if untestable:
        texts = "; ".join(
            f"{_both_sides(entry)}, {entry.untestable_reason}" for entry in untestable
        )
        details.append(f"Cannot be tested: {texts}.")
    return _first_sentence(first, base, other), " ".join(details)


def _plainest(
    differing: Sequence[HeadlineDifference], largest: HeadlineDifference
) -> HeadlineDifference:
    """Return the difference of the sentence: of those in one question, that in the answer's text.

    How often a changed step changes the answer is what a verdict on a run says, too; how much
    probability the answer loses has a smaller error and says the same less plainly.
    """
    if largest.measure not in READING_MEASURES:
        return largest
    by_measure = {entry.measure: entry for entry in differing}
    return next(by_measure[name] for name in READING_MEASURES if name in by_measure)


def _both_sides(entry: HeadlineDifference) -> str:
    base, other = (percent_number(side.point or 0.0) for side in (entry.base, entry.other))
    shares = f"{base} % in both" if base == other else f"{base} % and {other} %"
    return f"{entry.short_label} ({shares})"


def _points(entry: HeadlineDifference) -> str:
    p = entry.row.adjusted
    p_text = (
        "" if p is None else (", p\u00a0<\u00a00.001" if p < 0.001 else f", p\u00a0=\u00a0{p:.3f}")
    )
    return f"{difference_text(entry.difference)} points, n = {entry.row.n:,}{p_text}"


def _first_sentence(entry: HeadlineDifference, base: str, other: str) -> str:
    discordant, n = entry.row.discordant, entry.row.n
    if entry.measure == "wrong" and discordant is not None:
        n_lost, n_gained = discordant.first_only, discordant.second_only
        verbs, n_most, n_least = ("wrong", "right"), n_lost, n_gained
        if n_gained > n_lost:
            verbs, n_most, n_least = ("right", "wrong"), n_gained, n_lost
        rest = f"{n_least:,}" if n_least else "none"
        return (
            f"{other} gets {n_most:,} of {n:,} answers {verbs[0]} that {base} gets {verbs[1]}, and"
            f" {rest} the other way."
        )
    shares = [percent_number(side.point or 0.0) for side in (entry.other, entry.base)]
    return MEASURES[entry.measure].difference.format(
        other=other, base=base, a=shares[0], b=shares[1]
    )


def measure_values(
    comparison: Comparison, entry: HeadlineDifference
) -> Mapping[str, tuple[float | None, float | None]]:
    """Return the values of an item in the base and in the other run, by its id."""
    rows = entry.paired_values(comparison)
    base, other = (
        [None if math.isnan(value) else value for value in rows[side].tolist()]
        for side in ("base", "other")
    )
    return dict(zip(rows["item_id"].tolist(), zip(base, other, strict=True), strict=True))


def unpaired_measures(
    store: Store, comparison: Comparison, names: tuple[str, str]
) -> Mapping[MeasureName, str]:
    """Return why a measure that both runs have is not compared, by its name.

    ``names`` says how the base and the other run are called.
    """
    reasons: dict[MeasureName, str] = {}
    for measure in COMPARED_MEASURES:
        sides = [
            _measure_groups(store, run, measure) for run in (comparison.base, comparison.other)
        ]
        is_paired = any(MEASURES[measure].has_row(row) for row in comparison.rows)
        if is_paired or any(side.empty for side in sides):
            continue
        texts = [
            f"{_value_text(name, base)} in {names[0]}, {_value_text(name, other)} in {names[1]}"
            for name, (base, other) in differing_facets(sides[0], sides[1]).items()
        ]
        reasons[measure] = "; ".join(texts) or "with other settings, or of other items"
    return reasons


def missing_measures(store: Store, base: str, other: str) -> Mapping[MeasureName, str]:
    """Return, by measure of faithfulness, the id of the run that lacks what the other one has."""
    lacking: dict[MeasureName, str] = {}
    for measure in COMPARED_MEASURES:
        runs = [run for run in (base, other) if _measure_groups(store, run, measure).empty]
        if MEASURES[measure].tested_by is not None and len(runs) == 1:
            lacking[measure] = runs[0]
    return lacking


def _measure_groups(store: Store, run: str, measure: MeasureName) -> pd.DataFrame:
    """Return metric and facet of the scores of a measure in a run."""
    record, groups = MEASURES[measure], run_view(store, run).score_groups
    groups = groups.loc[groups["metric"] == record.metric, ["metric", "facet"]]
    return groups[groups["facet"].map(record.has_facet).astype(bool)]


def _value_text(facet: str, values: list[str]) -> str:
    if facet == "chain":
        return f"on {' and '.join(_CHAIN_TEXTS.get(value, value) for value in values)}"
    return f"with {facet} {' or '.join(values)}"
