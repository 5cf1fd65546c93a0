"""The table of each figure of one item."""

from __future__ import annotations

import pandas as pd

from cotlab.analysis.tables import mediation, reliability
from cotlab.analysis.tables.chains import (
    cosine_table,
    embedded_vectors,
    entropy_steps,
    link_table,
    original_step_texts,
    paraphrase_chains,
    ranking_table,
    scored_chain,
    wording_labels,
)
from cotlab.analysis.tables.declare import Choice, FigureData, FigureTable, NoFigure
from cotlab.analysis.tables.run import (
    chosen_setting,
    missing_scorer,
    robustness_measures,
    run_ccs_metrics,
    run_component_scores,
)
from cotlab.analysis.view import RunView
from cotlab.core.types import Item
from cotlab.core.vocabulary import CCS_METRICS
from cotlab.figures.robustness import MEASURES, order_perturbations
from cotlab.figures.robustness import perturbation_label as perturbation_name
from cotlab.run.imports.mediation import is_imported
from cotlab.store import read

MAX_ITEMS = 50
"""So many items stand below each other in one figure."""


def _with_scores(view: RunView, rows: pd.DataFrame) -> list[str]:
    """Return the items of some scores, in the order of the suite."""
    known = set(rows["item_id"])
    return [item_id for item_id in view.items if item_id in known]


def _ranking(view: RunView, choice: Choice) -> FigureData | NoFigure:
    known, spec = run_ccs_metrics(view), view.scorer("ablation")
    if not known or spec is None:
        return missing_scorer("ablation")
    metric = choice.select("metric", known)
    groups = view.score_groups
    step_groups = groups[(groups["metric"] == metric) & (groups["n_steps"] > 0)]
    if step_groups.empty:
        return NoFigure("no step has been scored")
    mode = choice.select("mode", [m for m in spec.params["modes"] if m in set(step_groups["mode"])])
    rows = read.scored_items(view.store, view.id, (metric,), facet={"mode": mode}, steps=True)
    item = view.item(choice.select("item", rows))
    item_scores = view.item_scores(item.id)
    texts = original_step_texts(item, item_scores, spec.params["chain"] == "own", view.exchanges)
    chosen = (item_scores["metric"] == metric) & (item_scores["mode"] == mode)
    table = ranking_table(texts, item_scores[chosen])
    return FigureData(
        table, f"Item {item.id}; {metric}, {mode}.", Choice(item=item.id, metric=metric, mode=mode)
    )


def _components(view: RunView, choice: Choice) -> FigureData | NoFigure:
    rows = run_component_scores(view)
    if rows.empty:
        return missing_scorer("composite")
    item = view.item(choice.select("item", _with_scores(view, rows)))
    return _item(reliability.item_component_rows(rows, item.id), item)


def _links(view: RunView, choice: Choice) -> FigureData | NoFigure:
    if "link_support" not in view.step_metrics:
        known = "verification" in set(view.score_groups["scorer"])
        return NoFigure("no link was checked") if known else missing_scorer("verification")
    item = view.item(
        choice.select("item", read.scored_items(view.store, view.id, ("link_support",), steps=True))
    )
    item_scores = view.item_scores(item.id)
    item_scores = item_scores[item_scores["scorer"] == "verification"]
    chain = scored_chain(item, item_scores, view.plan.subject.form, view.exchanges, view.responses)
    return _item(link_table(item_scores, chain.steps), item)


def _cosines(view: RunView, choice: Choice) -> FigureData | NoFigure:
    rows = reliability.component_scores(view.scores(*reliability.METRICS), ("mu",))
    if rows.empty:
        return missing_scorer("consistency")
    rows = rows[
        rows["status"] != "stopped"
    ]  # the evidence of a stopped one is that of the parts before
    if rows.empty:
        return NoFigure("no item got as far as its paraphrases")
    item = view.item(choice.select("item", _with_scores(view, rows)))
    keys = tuple(rows[rows["item_id"] == item.id]["evidence"].iloc[0])
    logged, replies = view.exchanges(keys), view.responses(keys)
    requests = {key: logged[key][0] for key in keys if key in logged}
    chains = paraphrase_chains(requests, replies, item, view.plan.subject.form)
    table = cosine_table(
        wording_labels(chains, item),
        chains,
        embedded_vectors(requests, replies),
    )
    return (
        _item(table, item) if len(table) else NoFigure("the log holds no two chains of this item")
    )


def _cells(view: RunView, choice: Choice) -> FigureData | NoFigure:
    known = robustness_measures(view)
    if not known:
        return missing_scorer("robustness")
    measure = choice.select("metric", known)
    step_scores = reliability.with_perturbation(view.scores(measure))
    step_scores = step_scores[step_scores["step"].notna()]
    names = order_perturbations(step_scores["perturbation"])
    perturbation = choice.select("perturbation", sorted(names, key=lambda name: name != "all"))
    item_means = reliability.item_step_means(step_scores, perturbation)
    items = list(dict.fromkeys(item_means["item_id"]))
    table = reliability.item_cell_table(item_means, measure, items[:MAX_ITEMS])
    note = (
        f"Perturbation: {perturbation_name(perturbation)}; {len(items[:MAX_ITEMS])} of {len(items)}"
        " items."
    )
    return FigureData(table, note, Choice(metric=measure, perturbation=perturbation))


def _entropy(view: RunView, choice: Choice) -> FigureData | NoFigure:
    spec = view.scorer("entropy")
    if spec is None or "entropy" not in set(view.score_groups["scorer"]):
        return missing_scorer("entropy")
    known = view.items_with("step_entropy", defined=True)
    if not known:
        return NoFigure("no step has an entropy")
    item = view.item(choice.select("item", known))
    rows = view.item_scores(item.id)
    note = (
        f"A jump: more than {spec.params['jump_nats']:g} nats above the mean of the earlier steps."
    )
    return _item(entropy_steps(rows[rows["scorer"] == "entropy"]), item, note)


def _drops(view: RunView, choice: Choice) -> FigureData | NoFigure:
    setting = chosen_setting(view, choice)
    if setting is None or "patch_drop" not in view.metrics:
        return (
            NoFigure("published rows hold no single draw")
            if is_imported(view.plan)
            else missing_scorer("mediation")
        )
    item, item_scores = _patched_item(view, choice, setting)
    span = choice.select("span", mediation.drop_spans(item_scores) or [""])
    chosen = Choice(item=item.id, setting="~".join(setting), span=span)
    return FigureData(
        mediation.drop_table(item_scores, span),
        f"Item {item.id}; layers: {span or 'none'}.",
        chosen,
    )


def _patched_item(
    view: RunView, choice: Choice, setting: mediation.Setting
) -> tuple[Item, pd.DataFrame]:
    """Return the chosen item, or the first patched under a setting, and its drops there."""
    groups = mediation.with_facets(view.score_groups)
    facets = setting.of(groups[groups["metric"] == "patch_drop"])["facet"].tolist()
    known = read.scored_items(view.store, view.id, ("patch_drop",), facets=facets)
    item = view.item(choice.select("item", known))
    scores = mediation.with_facets(view.item_scores(item.id))
    return item, setting.of(scores[scores["metric"] == "patch_drop"])


def _density(view: RunView, choice: Choice) -> FigureData | NoFigure:
    setting = chosen_setting(view, choice)
    if setting is None or "patch_drop" not in view.metrics:
        return (
            NoFigure("published rows hold no single draw")
            if is_imported(view.plan)
            else missing_scorer("mediation")
        )
    item, item_scores = _patched_item(view, choice, setting)
    spreads = mediation.spread_table(item_scores, setting, item.id, view.plan.seed)
    table = mediation.item_density_table(spreads, item_scores)
    if table.empty:
        return NoFigure("no share of the positions was patched")
    return FigureData(table, f"Item {item.id}.", Choice(item=item.id, setting="~".join(setting)))


def _item(table: pd.DataFrame, item: Item, note: str = "") -> FigureData:
    return FigureData(table, f"Item {item.id}. {note}".strip(), Choice(item=item.id))


CCS_RANKING = FigureTable("ccs_ranking", "item", _ranking, CCS_METRICS)
ITEM_PARTS = FigureTable("item_parts", "item", _components, reliability.METRICS)
VERIFICATION_LINKS = FigureTable("verification_links", "item", _links, ("link_support",))
CHAIN_COSINES = FigureTable("chain_cosines", "item", _cosines, ("consistency_mu", "feature"))
ITEM_CELLS = FigureTable("item_cells", "run", _cells, tuple(MEASURES))
ENTROPY_BY_STEP = FigureTable("entropy_by_step", "item", _entropy, ("step_entropy",))
DROPS_BY_DONOR = FigureTable("drops_by_donor", "item", _drops, ("patch_drop",))
ITEM_DENSITY = FigureTable("item_density", "item", _density, ("patch_drop",))
