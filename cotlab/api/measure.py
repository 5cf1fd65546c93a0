"""Run one scorer on one item: the same plan, transport and budget as a run, without a store."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from cotlab.core.errors import ConfigError
from cotlab.core.program import Peers, Scorer
from cotlab.core.registry import PROVIDERS, SCORERS
from cotlab.core.types import Item, Score, ScoreStatus, Step, Suite
from cotlab.metrics.asked_answers import program_of
from cotlab.run.config import RunConfig, read_config
from cotlab.run.plan import params_of
from cotlab.run.resolved import ResolvedRun
from cotlab.run.secrets import load_secrets
from cotlab.run.server_check import check_servers
from cotlab.run.transport.dispatcher import Dispatcher, drive, run_coroutine
from cotlab.run.unread_options import check_flags_are_read
from cotlab.store.live import RunProgress
from cotlab.store.responses import ResponseLog
from cotlab.text.steps import split_steps

LogFolder = str | Path | None
"""Folder of the store whose response log is used; None for none."""
_IN_MEMORY_PATH = Path(":memory:")


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a scorer says of one item."""

    metric: str
    """Name of the metric that ``value`` is of."""
    value: float | None
    """The metric's value; None exactly when ``status`` is not ok."""
    status: ScoreStatus
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
    for name, text in (("question", question), *((f"step {i}", t) for i, t in enumerate(texts, 1))):
        if not isinstance(text, str):
            raise ConfigError(f"The {name} is no text: {text!r}.")
    if not isinstance(answer, str | None):
        raise ConfigError(f"The answer is no text: {answer!r}.")
    return Item("item", question, answer, tuple(Step(i, text) for i, text in enumerate(texts)))


def measure(
    scorer: str,
    item: Item,
    options: Mapping[str, Any],
    settings: Mapping[str, Any] | None = None,
    *,
    headline: tuple[str, Mapping[str, str]] | None = None,
    other_items: Sequence[Item] = (),
    log: LogFolder = None,
) -> Measurement:
    """Run a scorer on one item and return its scores.

    Parameters
    ----------
    scorer : str
        Name in the registry.
    options : mapping
        Fields of a RunConfig; ``model`` may be ``provider/model``. An embedder of None asks none.
    settings : mapping, optional
        Options of the scorer.
    headline : (metric, facet), optional
        The score that becomes ``value``: the first of the metric whose facet holds these pairs. By
        default the scorer's first metric, whatever the facet.
    other_items : sequence of Item
        The other items of the suite, for scorers that compare with them.
    log : str or Path, optional
        Folder of a store.
    """
    load_secrets()
    config = _build_config(scorer, options, settings or {})
    resolved = ResolvedRun(config)
    check_flags_are_read(resolved, options)
    models = dict(resolved.models)
    if options.get("embedder", "") is None:
        models.pop("embedder", None)
    suite = Suite.from_items(
        "item", [item, *(other_item for other_item in other_items if other_item.id != item.id)]
    )
    opened = resolved.open_providers(models)
    plan = resolved.plan(suite, {role: provider.ref for role, provider in opened.items()})
    spec, definition = plan.scorers[0], SCORERS[scorer]
    providers = {provider.ref: provider for provider in opened.values()}
    log_file = _IN_MEMORY_PATH if log is None else Path(log) / "log.sqlite"

    async def run_scorer() -> tuple[Score, ...]:
        response_log = ResponseLog(log_file)
        dispatcher = Dispatcher(
            f"api-{uuid4().hex}",
            providers,
            resolved.provider_prices(providers.values()),
            response_log,
            resolved.limits,
            RunProgress(items_total=1, started_at=time.time()),
        )
        dispatcher.before_first_send = partial(check_servers, plan, suite, config.probe, dispatcher)
        try:
            params = params_of(plan, spec)
            if definition.prepare is not None:
                constants = await drive(definition.prepare(suite, params), dispatcher)
                params = params_of(plan, spec, constants)
            peers = Peers.from_suite(suite, plan.seed)
            scores: tuple[Score, ...] = await drive(
                program_of(definition, item, params, peers), dispatcher
            )
            return scores
        finally:
            await dispatcher.drain()
            for provider in providers.values():
                await provider.close()
            response_log.close()

    return _collect_measurement(definition, run_coroutine(run_scorer), headline)


def redundant_step_share(measurement: Measurement, metric: str, threshold: float) -> Measurement:
    """Return the share of defined steps below a threshold as the value: RRR of one item."""
    import pandas as pd

    from cotlab.core.keys import canonical_json
    from cotlab.metrics.ablation import rrr_estimates

    steps = [score for score in measurement.steps if score.metric == metric]
    evidence = tuple(dict.fromkeys(key for score in steps for key in score.evidence))
    measurement = replace(measurement, metric="rrr", evidence=evidence)
    if not steps:
        no_chain_reason = "the item has no chain"
        return replace(measurement, value=None, status="undefined", reason=no_chain_reason)
    table = pd.DataFrame([asdict(score) for score in steps]).astype({"value": float})
    table["facet"] = [canonical_json(dict(score.facet)) for score in steps]
    value = rrr_estimates(table, {"ccs_threshold": threshold}, 0)[0].point
    if value is not None:
        return replace(measurement, value=value, status="ok", reason=None)
    first_undefined_score = next(score for score in steps if score.value is None)
    return replace(
        measurement,
        value=None,
        status=first_undefined_score.status,
        reason=first_undefined_score.reason,
    )


def without_refused_cmi(measurement: Measurement) -> Measurement:
    """Return a measurement of CMI, undefined where its control loses more than the chain.

    Then CMI is 0 for a chain that is not used as for one that needs its question; bypass, its
    complement, is undefined with it.
    """
    from cotlab.metrics.mediation.indices import headline_reason

    all_layer_scores = [s for s in measurement.parts if dict(s.facet).get("span") == "all"]
    bypass = next((s for s in all_layer_scores if s.metric == "bypass"), None)
    if measurement.value is None or bypass is None:
        return measurement
    value_by_metric = {s.metric: s.value for s in all_layer_scores if s.facet == bypass.facet}
    reason = headline_reason(
        dict(bypass.facet)["control"],
        value_by_metric.get("drop_cot"),
        value_by_metric.get("drop_control"),
    )
    if not reason:
        return measurement
    refused_bypass = replace(bypass, value=None, status="undefined", reason=reason)
    return replace(
        measurement,
        value=None,
        status="undefined",
        reason=reason,
        parts=tuple(refused_bypass if s is bypass else s for s in measurement.parts),
    )


def _build_config(
    scorer: str, options: Mapping[str, Any], settings: Mapping[str, Any]
) -> RunConfig:
    """Return the configuration of a run of one scorer; ``provider/model`` names both."""
    if options.get("model", "") is None:
        raise ConfigError("model=None names no model: give provider/model, or leave it out.")
    fields = {name: value for name, value in options.items() if value is not None}
    if fields.keys() & {
        "scorer",
        "profile",
        "limit",
        "sample",
        "batch",
        "base_run",
        "tuned_run",
        "output",
    }:
        raise ConfigError("One item is measured: run_suite takes options of a whole run.")
    provider, slash, name = str(fields.get("model", "")).partition("/")
    if slash and "provider" not in options and not os.environ.get("COTLAB_PROVIDER"):
        PROVIDERS.require(provider)
        fields |= {"provider": provider, "model": name}
    scorer_options = {f"{scorer}.{name}": str(value) for name, value in settings.items()}
    fields |= {"scorer": [scorer], "set": scorer_options | dict(fields.get("set", {}))}
    return read_config(fields)


def _collect_measurement(
    definition: Scorer, scores: Sequence[Score], headline: tuple[str, Mapping[str, str]] | None
) -> Measurement:
    """Return scores with one of them as the value; hidden hold-out scores are left out."""
    from cotlab.metrics.consistency import HOLDOUT_DIFFERENCE

    public_scores = [score for score in scores if score.metric != HOLDOUT_DIFFERENCE.name]
    item_scores = [score for score in public_scores if score.step is None]
    metric, facet = headline or (definition.cards[0].name, {})
    headline_score = next(
        (s for s in item_scores if s.metric == metric and facet.items() <= dict(s.facet).items()),
        Score(metric, "item", None, status="undefined", reason=f"the scorer gives no {metric}"),
    )
    parts = tuple(score for score in item_scores if score is not headline_score)
    steps = tuple(score for score in public_scores if score.step is not None)
    return Measurement(
        metric,
        headline_score.value,
        headline_score.status,
        headline_score.reason,
        headline_score.evidence,
        parts,
        steps,
    )
