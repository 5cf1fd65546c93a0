"""Run the scorers on the organisms, through the ordinary runner, and evaluate each metric."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

from cotlab.core.errors import ConfigError
from cotlab.core.program import Headline, Scorer
from cotlab.core.registry import SCORERS
from cotlab.core.types import Suite
from cotlab.run.plan import code_version
from cotlab.store import read
from cotlab.store.database import Store, store_folder
from cotlab.store.live import RunProgress
from cotlab.suites.wordproblems import make_suite
from cotlab.validation.coded_wording import (
    CODED_RECORD_KEY,
    evaluate_coded_wording,
    installed_coded_models,
    make_coded_wording_suite,
)
from cotlab.validation.discrimination import evaluate_metric
from cotlab.validation.models import ORGANISMS, weights_digest
from cotlab.validation.needs_question import (
    RECORD_KEY,
    evaluate_needs_question,
    installed_models,
    make_needs_question_suite,
)
from cotlab.validation.report import REPORT_FOLDER, store_report
from cotlab.validation.runs import (
    Floats,
    headline_values,
    run_on_organism,
    status_by_run_id,
    undefined_reason,
)

_HeadlineKey = tuple[str, str]


def validate_metrics(
    *,
    n_items: int = 100,
    seed: int = 7,
    scorers: Sequence[str] = (),
    folder: Path | None = None,
    on_progress: Callable[[RunProgress], None] = lambda p: None,
    announce: Callable[[str], None] = lambda run_id: None,
) -> dict[str, Any]:
    """Measure the headline metrics of scorers on the organisms.

    Parameters
    ----------
    items, seed : int
        Number of fresh word problems, and their seed. All models get the same ones; for ``hint``
        each has a wrong hint, for those whose chain needs its question it states operations, and
        for the one whose wording carries the answer it spells that.
    scorers : sequence of str
        Names; by default every registered scorer that declares headlines.
    folder : Path
        A store's folder; the runs go into a separate store below it. By default COTLAB_STORE.
    on_progress : callable of Progress
    announce : callable of str
        Called with the identifier of each run that has something left to do.

    Returns
    -------
    dict
        The report, as JSON without NaN: what is undefined is None. It is also merged into
        ``validation/latest.json`` there, where the metrics of other scorers stay; each has its
        items, seed and date.

    Raises
    ------
    ConfigError
        If ``n_items`` is below 1, or a named scorer declares no headlines.
    """
    if n_items < 1:
        raise ConfigError(f"--items must be at least 1, got {n_items}.")
    store_path = folder or store_folder()
    store = Store(store_path / REPORT_FOLDER)
    chosen_scorers: list[Scorer] = [SCORERS[name] for name in dict.fromkeys(scorers or SCORERS)]
    for scorer in chosen_scorers:
        if scorers and not scorer.headlines:
            raise ConfigError(
                f"The scorer {scorer.name!r} declares no headlines, so there is nothing to"
                " validate."
            )
    suite_by_hint = {
        is_hinted: _make_suite(n_items, seed, is_hinted) for is_hinted in (False, True)
    }
    operations_suite = make_needs_question_suite(n_items, seed)
    needs_question_models = installed_models()
    coded_suite = make_coded_wording_suite(n_items, seed)
    coded_models = installed_coded_models()
    all_models = (*ORGANISMS, *needs_question_models, *coded_models)
    suite_by_model = {
        **{model: suite_by_hint[model == "hint"] for model in ORGANISMS},
        **dict.fromkeys(needs_question_models, operations_suite),
        **dict.fromkeys(coded_models, coded_suite),
    }
    metrics: dict[str, Any] = {}
    status_by_run = status_by_run_id(store)
    for scorer in (chosen_scorer for chosen_scorer in chosen_scorers if chosen_scorer.headlines):
        digest_by_model = {model: weights_digest(model) for model in all_models}
        values_by_headline: dict[_HeadlineKey, dict[str, Floats]] = {
            _headline_key(h): {} for h in scorer.headlines
        }
        reasons_by_headline: dict[_HeadlineKey, dict[str, str | None]] = {
            _headline_key(h): {} for h in scorer.headlines
        }
        for model, chain_source in product(
            all_models, dict.fromkeys(h.measured_chain for h in scorer.headlines)
        ):
            suite = suite_by_model[model]
            run_id = run_on_organism(
                store,
                scorer,
                model,
                suite,
                status_by_run,
                chain_source=chain_source,
                on_progress=on_progress,
                announce=announce,
            )
            headlines = [h for h in scorer.headlines if h.measured_chain == chain_source]
            scores = read.run_scores(store, run_id, metrics=[h.metric for h in headlines])
            for headline in headlines:
                values_by_headline[_headline_key(headline)][model] = headline_values(
                    scores, headline, [item.id for item in suite.items]
                )
                reasons_by_headline[_headline_key(headline)][model] = undefined_reason(
                    scores, headline
                )
        card_by_name = {card.name: card for card in scorer.cards}
        for headline in scorer.headlines:
            name, card = _headline_name(headline, scorer.headlines), card_by_name[headline.metric]
            values_by_model = values_by_headline[_headline_key(headline)]
            reason_by_model = reasons_by_headline[_headline_key(headline)]
            result = evaluate_metric(
                name,
                values_by_model,
                faithful_end=headline.faithful_end,
                seed=seed,
                metric_range=(card.lo, card.hi),
                is_flag=card.flag,
                reason_by_model=reason_by_model,
            )
            needs_question_record = evaluate_needs_question(
                name,
                {model: values_by_model[model] for model in needs_question_models},
                faithful_end=headline.faithful_end,
                seed=seed,
                is_flag=card.flag,
                reason_by_model=reason_by_model,
            )
            coded_record = evaluate_coded_wording(
                name,
                {model: values_by_model[model] for model in coded_models},
                seed=seed,
                is_flag=card.flag,
                reason_by_model=reason_by_model,
            )
            metrics[name] = {
                "scorer": scorer.name,
                "scorer_version": scorer.version,
                "facet": dict(headline.facet),
                "unit": card.unit,
                **result,
                **({RECORD_KEY: needs_question_record} if needs_question_record else {}),
                **({CODED_RECORD_KEY: coded_record} if coded_record else {}),
                **_measurement_info(n_items, seed),
                "weights": digest_by_model,
            }
    report = {"metrics": metrics, **_measurement_info(n_items, seed)}
    store_report(report, store_path)
    return report


def _measurement_info(n_items: int, seed: int) -> dict[str, Any]:
    """Return items, seed, version and time of a measurement that ends now."""
    measured_at = datetime.now(UTC).isoformat(timespec="seconds")
    return {"items": n_items, "seed": seed, "code_version": code_version(), "at": measured_at}


def _headline_key(headline: Headline) -> _HeadlineKey:
    return headline.metric, json.dumps(dict(headline.facet), sort_keys=True)


def _headline_name(headline: Headline, headlines: Sequence[Headline]) -> str:
    """Return the metric, with its facet where another headline has the same metric."""
    if sum(other_headline.metric == headline.metric for other_headline in headlines) < 2:
        return headline.metric
    return (
        f"{headline.metric}"
        f" ({', '.join(f'{name}={value}' for name, value in sorted(headline.facet.items()))})"
    )


def _make_suite(n_items: int, seed: int, is_hinted: bool) -> Suite:
    suite = make_suite(n_items, seed, hint_share=1.0) if is_hinted else make_suite(n_items, seed)
    return Suite.from_items(
        f"validation-{seed}-{n_items}{'-hinted' if is_hinted else ''}", suite.items
    )
