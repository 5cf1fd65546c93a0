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
from cotlab.store.live import Progress
from cotlab.suites.wordproblems import make_suite
from cotlab.validation.discrimination import evaluate_metric
from cotlab.validation.models import ORGANISMS, weights_digest
from cotlab.validation.report import FOLDER, store_report
from cotlab.validation.runs import Floats, headline_values, run_on, statuses, undefined_reason

_Key = tuple[str, str]


def validate_metrics(
    *,
    items: int = 100,
    seed: int = 7,
    scorers: Sequence[str] = (),
    folder: Path | None = None,
    on_progress: Callable[[Progress], None] = lambda p: None,
    announce: Callable[[str], None] = lambda run_id: None,
) -> dict[str, Any]:
    """Measure the headline metrics of scorers on the organisms.

    Parameters
    ----------
    items, seed : int
        Number of fresh word problems, and their seed. All models get the same ones; for ``hint``
        each has a wrong hint.
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
        If ``items`` is below 1, or a named scorer declares no headlines.
    """
    if items < 1:
        raise ConfigError(f"--items must be at least 1, got {items}.")
    home = folder or store_folder()
    store = Store(home / FOLDER)
    chosen: list[Scorer] = [SCORERS[name] for name in dict.fromkeys(scorers or SCORERS)]
    for scorer in chosen:
        if scorers and not scorer.headlines:
            raise ConfigError(
                f"The scorer {scorer.name!r} declares no headlines, so there is nothing to hold"
                " against a truth."
            )
    suites = {hinted: _suite(items, seed, hinted) for hinted in (False, True)}
    metrics: dict[str, Any] = {}
    known = statuses(store)
    for scorer in (s for s in chosen if s.headlines):
        weights = {model: weights_digest(model) for model in ORGANISMS}
        values: dict[_Key, dict[str, Floats]] = {_key(h): {} for h in scorer.headlines}
        reasons: dict[_Key, dict[str, str | None]] = {_key(h): {} for h in scorer.headlines}
        for model, chain in product(ORGANISMS, dict.fromkeys(h.chain for h in scorer.headlines)):
            suite = suites[model == "hint"]
            run_id = run_on(
                store,
                scorer,
                model,
                suite,
                known,
                chain=chain,
                on_progress=on_progress,
                announce=announce,
            )
            headlines = [h for h in scorer.headlines if h.chain == chain]
            scores = read.run_scores(store, run_id, metrics=[h.metric for h in headlines])
            for headline in headlines:
                values[_key(headline)][model] = headline_values(
                    scores, headline, [item.id for item in suite.items]
                )
                reasons[_key(headline)][model] = undefined_reason(scores, headline)
        about = {
            "items": items,
            "seed": seed,
            "code_version": code_version(),
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "weights": weights,
        }
        cards = {card.name: card for card in scorer.cards}
        for headline in scorer.headlines:
            name, card = _name(headline, scorer.headlines), cards[headline.metric]
            result = evaluate_metric(
                name,
                values[_key(headline)],
                faithful=headline.faithful,
                seed=seed,
                bounds=(card.lo, card.hi),
                flag=card.flag,
                reasons=reasons[_key(headline)],
            )
            metrics[name] = {
                "scorer": scorer.name,
                "facet": dict(headline.facet),
                "unit": card.unit,
                **result,
                **about,
            }
    report = {
        "metrics": metrics,
        "items": items,
        "seed": seed,
        "code_version": code_version(),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    store_report(report, home)
    return report


def _key(headline: Headline) -> _Key:
    return headline.metric, json.dumps(dict(headline.facet), sort_keys=True)


def _name(headline: Headline, among: Sequence[Headline]) -> str:
    """Return the metric, with its facet where another headline has the same metric."""
    if sum(other.metric == headline.metric for other in among) < 2:
        return headline.metric
    return f"{headline.metric} ({', '.join(f'{k}={v}' for k, v in sorted(headline.facet.items()))})"


def _suite(items: int, seed: int, hinted: bool) -> Suite:
    suite = make_suite(items, seed, hinted=1.0) if hinted else make_suite(items, seed)
    return Suite.of(f"validation-{seed}-{items}{'-hinted' if hinted else ''}", suite.items)
