"""Run the scorers on the organisms, through the ordinary runner, and say how far each metric can be trusted."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cotlab.core.errors import ConfigError, CotlabError
from cotlab.core.keys import digest
from cotlab.core.program import Headline, Scorer
from cotlab.core.registry import SCORERS
from cotlab.core.types import Suite
from cotlab.run.config import RunConfig, config_again
from cotlab.run.launch import resume, start
from cotlab.run.plan import code_version
from cotlab.store import read
from cotlab.store.gate import Store, store_folder
from cotlab.store.live import Progress
from cotlab.suites.wordproblems import make_suite
from cotlab.validation.tell import ORGANISMS, tell
from cotlab.validation.values import Floats, item_values

MODES = ["remove", "corrupt"]
FOLDER, LATEST = "validation", "latest.json"
_Key = tuple[str, str]
SHIPPED = Path(__file__).parents[2] / "data" / "validation.json"


def validate(
    *,
    items: int = 100,
    seed: int = 7,
    scorers: Sequence[str] = (),
    folder: Path | None = None,
    tell_run: Callable[[Progress], None] = lambda p: None,
    announce: Callable[[str], None] = lambda run_id: None,
) -> dict[str, Any]:
    """Hold the headlines of scorers against the organisms.

    Parameters
    ----------
    items, seed : int
        How many fresh word problems, and their seed. All models get the same ones; for ``hint`` each has a wrong hint.
    scorers : sequence of str
        Names; by default every registered scorer that has headlines.
    folder : Path
        A store's folder; the runs go into a store of their own below it. By default COTLAB_STORE.

    Returns
    -------
    dict
        JSON without NaN, also written to ``validation/latest.json`` there: what is undefined is None.
    """
    if items < 1:
        raise ConfigError(f"--items must be at least 1, got {items}.")
    store = Store((folder or store_folder()) / FOLDER)
    chosen: list[Scorer] = [SCORERS[name] for name in dict.fromkeys(scorers or SCORERS)]
    for one in chosen:
        if scorers and not one.headlines:
            raise ConfigError(f"The scorer {one.name!r} declares no headlines, so there is nothing to hold against a truth.")
    suites = {hinted: _suite(items, seed, hinted) for hinted in (False, True)}
    metrics: dict[str, Any] = {}
    for one in (s for s in chosen if s.headlines):
        values: dict[_Key, dict[str, Floats]] = {_key(h): {} for h in one.headlines}
        for model in ORGANISMS:
            suite = suites[model == "hint"]
            run_id = _run(store, one, model, suite, items, seed, tell_run, announce)
            scores = read.scores(store, run_id, metrics=[h.metric for h in one.headlines])
            for headline in one.headlines:
                values[_key(headline)][model] = item_values(scores, headline, [item.id for item in suite.items])
        ranges = {card.name: (card.lo, card.hi) for card in one.cards}
        for headline in one.headlines:
            name = _name(headline, one.headlines)
            found = tell(name, values[_key(headline)], faithful=headline.faithful, seed=seed,
                         share=ranges.get(headline.metric) == (0, 1))  # fmt: skip
            metrics[name] = {"scorer": one.name, "facet": dict(headline.facet), **found}
    report = {
        "metrics": metrics, "items": items, "seed": seed, "code_version": code_version(),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }  # fmt: skip
    store.folder.mkdir(parents=True, exist_ok=True)
    (store.folder / LATEST).write_text(as_json(report), "utf-8")
    return report


def as_json(report: dict[str, Any]) -> str:
    """The report as a file; a NaN in it is a bug and raises ValueError."""
    return json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read_report(folder: Path, shipped: Path = SHIPPED) -> dict[str, Any] | None:
    """The latest report of a store, else the shipped one, else None."""
    for path in (folder / FOLDER / LATEST, shipped):
        if path.is_file():
            found: dict[str, Any] = json.loads(path.read_text("utf-8"))
            return found
    return None


def _key(headline: Headline) -> _Key:
    return headline.metric, json.dumps(dict(headline.facet), sort_keys=True)


def _name(headline: Headline, among: Sequence[Headline]) -> str:
    """The metric, and its facet where another headline has the same metric."""
    if sum(other.metric == headline.metric for other in among) < 2:
        return headline.metric
    return f"{headline.metric} ({', '.join(f'{k}={v}' for k, v in sorted(headline.facet.items()))})"


def _suite(items: int, seed: int, hinted: bool) -> Suite:
    made = make_suite(items, seed, hinted=1.0) if hinted else make_suite(items, seed)
    return Suite.of(f"validation-{seed}-{items}{'-hinted' if hinted else ''}", made.items)


def _run(
    store: Store, one: Scorer, model: str, suite: Suite, items: int, seed: int,
    tell_run: Callable[[Progress], None], announce: Callable[[str], None],
) -> str:  # fmt: skip
    """Start the run of a scorer on an organism, go on with it where it was left, or leave it where it is done."""
    run_id = f"s{seed}-n{items}-{model}-{one.name}-{digest([one.version, dict(one.options), MODES])[:6]}"
    known = read.runs(store) if store.path.exists() else None
    status = None if known is None else next(iter(known.loc[known["id"] == run_id, "status"]), None)
    if status == "done":
        return run_id
    if status is None:
        # Every field is said, so that no environment variable of the machine changes what is compared.
        plain = {name: field.get_default(call_default_factory=True) for name, field in RunConfig.model_fields.items()}
        config = config_again(plain, {"model": model, "scorer": [one.name], "mode": MODES})
        done = start(config, store, suite=suite, tell=tell_run, announce=announce, run_id=run_id)
    else:
        done = resume(run_id, {}, store, tell=tell_run, announce=announce)
    if done.status != "done":
        raise CotlabError(f"The run {run_id} ended as {done.status}: {done.message} The same command goes on from there.")
    return run_id
