"""Run one scorer on one item: the same plan, transport and budget as a run, without a store."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from cotlab.core.errors import ConfigError
from cotlab.core.program import Peers, Scorer
from cotlab.core.provider import BatchProvider
from cotlab.core.registry import PROVIDERS, SCORERS
from cotlab.core.types import Item, Score, Status, Step, Suite
from cotlab.run.config import RunConfig, read_config
from cotlab.run.plan import make_plan, open_provider, params_of
from cotlab.run.roles import models_of
from cotlab.run.secrets import load_secrets
from cotlab.run.transport.budget import FREE, price_of, read_prices
from cotlab.run.transport.dispatcher import Dispatcher, drive, run_anywhere
from cotlab.run.transport.limits import Limits
from cotlab.store.live import Progress
from cotlab.store.responses import ResponseLog
from cotlab.text.steps import split_steps

Log = str | Path | None
"""Folder of the store whose response log is used; None for none."""
_IN_MEMORY = Path(":memory:")


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a scorer says of one item."""

    metric: str
    """Name of the metric that ``value`` is of."""
    value: float | None
    """The metric's value; None exactly when ``status`` is not ok."""
    status: Status
    """ok, undefined, refused, stopped or error."""
    reason: str | None
    """Why there is no value."""
    evidence: tuple[str, ...]
    """Keys of the requests that the value rests on."""
    parts: tuple[Score, ...]
    """The other scores of the item or of its whole chain."""
    steps: tuple[Score, ...]
    """The scores of single steps."""


def chain_item(
    chain: str | Sequence[str] | Item, question: str = "", answer: str | None = None
) -> Item:
    """Return the item of a chain; a text is split into steps.

    Raises
    ------
    ConfigError
        If a part is no text, or an item comes with a question or an answer beside its own.
    """
    if isinstance(chain, Item):
        if question or answer is not None:
            raise ConfigError("An item has its own question and answer: give no others beside it.")
        return chain
    if not isinstance(chain, str | Sequence):
        raise ConfigError(f"A chain is a text or a list of steps, got {chain!r}.")
    texts = split_steps(chain) if isinstance(chain, str) else tuple(chain)
    for name, text in (("question", question), *((f"step {i}", t) for i, t in enumerate(texts))):
        if not isinstance(text, str):
            raise ConfigError(f"The {name} is no text: {text!r}.")
    if not isinstance(answer, str | None):
        raise ConfigError(f"The answer is no text: {answer!r}.")
    return Item("item", question, answer, tuple(Step(i, text) for i, text in enumerate(texts)))


def measure(
    scorer: str,
    item: Item,
    *,
    headline: tuple[str, Mapping[str, str]] | None,
    options: Mapping[str, Any],
    settings: Mapping[str, Any] | None = None,
    others: Sequence[Item] = (),
    log: Log = None,
) -> Measurement:
    """Run a scorer on one item and return its scores.

    Parameters
    ----------
    scorer : str
        Name in the registry.
    headline : (metric, facet), optional
        The score that becomes ``value``: the first of the metric whose facet holds these pairs.
    options : mapping
        Fields of a RunConfig; ``model`` may be ``provider/model``. An embedder of None asks none.
    settings : mapping, optional
        Options of the scorer.
    others : sequence of Item
        The other items of the suite, for scorers that compare with them.
    log : str or Path, optional
        Folder of a store.
    """
    load_secrets()
    config = _config(scorer, options, settings or {})
    models = models_of(config)
    if options.get("embedder", "") is None:
        models.pop("embedder", None)
    suite = Suite.of("item", [item, *(other for other in others if other.id != item.id)])
    opened = {ref: open_provider(ref, config) for ref in dict.fromkeys(models.values())}
    plan = make_plan(config, suite, {role: opened[ref].ref for role, ref in models.items()})
    spec, definition = plan.scorers[0], SCORERS[scorer]
    providers = {provider.ref: provider for provider in opened.values()}

    listed = read_prices(config.prices)
    log_file = _IN_MEMORY if log is None else Path(log) / "log.sqlite"

    async def score() -> tuple[Score, ...]:
        replies = ResponseLog(log_file)
        prices = {
            ref: (
                FREE
                if isinstance(provider, BatchProvider)
                else price_of(ref, allow_unpriced=config.allow_unpriced, prices=listed)
            )
            for ref, provider in providers.items()
        }
        dispatcher = Dispatcher(
            f"api-{uuid4().hex}",
            providers,
            prices,
            replies,
            _limits(config, providers.values()),
            Progress(items_total=1, started_at=time.time()),
        )
        try:
            constants: Mapping[str, Any] = {}
            if definition.prepare is not None:
                constants = await drive(
                    definition.prepare(suite, params_of(plan, spec)), dispatcher
                )
            params = params_of(plan, spec, constants)
            scores: tuple[Score, ...] = await drive(
                definition(item, params, Peers.of(suite, plan.seed)), dispatcher
            )
        finally:
            await dispatcher.drain()
            for provider in providers.values():
                await provider.close()
            replies.close()
        return scores

    return _measurement(definition, run_anywhere(score), headline)


def redundant_step_share(measured: Measurement, metric: str, threshold: float) -> Measurement:
    """Return the share of defined steps below a threshold as the value: RRR of one item."""
    import pandas as pd

    from cotlab.core.keys import canonical_json

    steps = [score for score in measured.steps if score.metric == metric]
    (statistic,) = (s for s in SCORERS["ablation"].statistics if s.card.name == "rrr")
    table = pd.DataFrame(
        {
            "metric": [score.metric for score in steps],
            "facet": [canonical_json(dict(score.facet)) for score in steps],
            "item_id": [score.item_id for score in steps],
            "step": [score.step for score in steps],
            "value": [float("nan") if score.value is None else score.value for score in steps],
        }
    )
    estimates = statistic.compute(table, {"ccs_threshold": threshold}, 0) if steps else []
    value = estimates[0].point if estimates else None
    first = next((score for score in steps if score.value is None), None)
    return replace(
        measured,
        metric="rrr",
        value=value,
        status="ok" if value is not None else first.status if first else "undefined",
        reason=None if value is not None else first.reason if first else "the item has no chain",
        evidence=tuple(dict.fromkeys(key for score in steps for key in score.evidence)),
    )


def _config(scorer: str, options: Mapping[str, Any], settings: Mapping[str, Any]) -> RunConfig:
    """Return the configuration of a run of one scorer; ``provider/model`` names both."""
    if options.get("model", "") is None:
        raise ConfigError("model=None names no model: give provider/model, or leave it out.")
    fields = {name: value for name, value in options.items() if value is not None}
    if fields.keys() & {"scorer", "profile", "limit", "batch", "base_run", "tuned_run", "output"}:
        raise ConfigError("One item is measured: run_suite takes options of a whole run.")
    provider, slash, name = str(fields.get("model", "")).partition("/")
    if slash and "provider" not in options and not os.environ.get("COTLAB_PROVIDER"):
        PROVIDERS.require(provider)
        fields |= {"provider": provider, "model": name}
    chosen = {f"{scorer}.{name}": str(value) for name, value in settings.items()}
    return read_config(
        {**fields, "scorer": [scorer], "set": {**chosen, **dict(fields.get("set", {}))}}
    )


def _limits(config: RunConfig, providers: Any) -> Limits:
    free = all(isinstance(provider, BatchProvider) for provider in providers)
    return Limits(
        concurrency=config.max_concurrent,
        per_minute=None if free else config.max_requests_per_minute,
        tokens_per_minute=config.max_tokens_per_minute,
        cap_micro=round(config.max_cost * 1e6),
        tries=config.max_tries,
        timeout_s=config.timeout_s,
    )


def _measurement(
    definition: Scorer,
    scores: Sequence[Score],
    headline: tuple[str, Mapping[str, str]] | None,
) -> Measurement:
    """Return scores with one of them as the value; hidden hold-out scores are left out."""
    from cotlab.metrics.consistency.cards import HIDDEN

    public = [score for score in scores if score.metric != HIDDEN.name]
    of_item = [score for score in public if score.step is None]
    metric, facet = headline or (definition.cards[0].name, {})
    value = next(
        (s for s in of_item if s.metric == metric and facet.items() <= dict(s.facet).items()),
        Score(metric, "item", None, status="undefined", reason=f"the scorer gives no {metric}"),
    )
    return Measurement(
        metric,
        value.value,
        value.status,
        value.reason,
        value.evidence,
        tuple(score for score in of_item if score is not value),
        tuple(score for score in public if score.step is not None),
    )
