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
    wording_labels,
)
from cotlab.analysis.tables.declare import FigureChoice, FigureData, FigureTable, MissingFigure
from cotlab.analysis.tables.run import (
    missing_scorer_reason,
    robustness_measures,
    run_ccs_metrics,
    run_component_scores,
    select_mediation_setting,
)
from cotlab.analysis.view import RunView
from cotlab.core.types import CCS_METRICS, Item
from cotlab.figures.robustness import MEASURE_NAMES, order_perturbations
from cotlab.figures.robustness import perturbation_label as perturbation_name
from cotlab.run.scored_chain import scored_chain
from cotlab.store import read

MAX_ITEM_ROWS = 50
"""Most items of one figure."""


def _scored_items(view: RunView, rows: pd.DataFrame) -> list[str]:
    """Return the items of some scores, in the order of the suite."""
    scored_ids = set(rows["item_id"])
    return [item_id for item_id in view.items if item_id in scored_ids]


def _ranking_data(view: RunView, choice: FigureChoice) -> FigureData | MissingFigure:
    ccs_metrics, spec = run_ccs_metrics(view), view.scorer("ablation")
    if not ccs_metrics or spec is None:
        return missing_scorer_reason("ablation")
    metric = choice.select("metric", ccs_metrics)
    groups = view.score_groups
    step_groups = groups[(groups["metric"] == metric) & (groups["n_steps"] > 0)]
    if step_groups.empty:
        return MissingFigure("no step has been scored")
    mode = choice.select("mode", [m for m in spec.params["modes"] if m in set(step_groups["mode"])])
    scored_ids = read.list_scored_items(
        view.store, view.id, (metric,), facet_values={"mode": mode}, only_steps=True
    )
    item = view.item(choice.select("item", scored_ids))
    item_scores = view.item_scores(item.id)
    texts = original_step_texts(item, item_scores, spec.params["chain"] == "own", view.exchanges)
    is_chosen = (item_scores["metric"] == metric) & (item_scores["mode"] == mode)
    table = ranking_table(texts, item_scores[is_chosen])
    return FigureData(
        table,
        f"Item {item.id}; {metric}, {mode}.",
        FigureChoice(item=item.id, metric=metric, mode=mode),
    )


def _components_data(view: RunView, choice: FigureChoice) -> FigureData | MissingFigure:
    rows = run_component_scores(view)
    if rows.empty:
        return missing_scorer_reason("composite")
    item = view.item(choice.select("item", _scored_items(view, rows)))
    return _item_figure(reliability.item_component_rows(rows, item.id), item)


def _links_data(view: RunView, choice: FigureChoice) -> FigureData | MissingFigure:
    if "link_support" not in view.step_metrics:
        has_verification = "verification" in set(view.score_groups["scorer"])
        return (
            MissingFigure("no link was checked")
            if has_verification
            else missing_scorer_reason("verification")
        )
    item = view.item(
        choice.select(
            "item", read.list_scored_items(view.store, view.id, ("link_support",), only_steps=True)
        )
    )
    item_scores = view.item_scores(item.id)
    item_scores = item_scores[item_scores["scorer"] == "verification"]
    chain = scored_chain(item, item_scores, view.plan.subject.form, view.exchanges, view.responses)
    return _item_figure(link_table(item_scores, chain.steps), item)


def _cosines_data(view: RunView, choice: FigureChoice) -> FigureData | MissingFigure:
    rows = reliability.component_scores(view.scores(*reliability.RELIABILITY_METRICS), ("mu",))
    if rows.empty:
        return missing_scorer_reason("consistency")
    rows = rows[
        rows["status"] != "stopped"
    ]  # the evidence of a stopped one is that of the parts before
    if rows.empty:
        return MissingFigure("no item got as far as its paraphrases")
    item = view.item(choice.select("item", _scored_items(view, rows)))
    keys = tuple(rows[rows["item_id"] == item.id]["evidence"].iloc[0])
    logged_exchanges, replies = view.exchanges(keys), view.responses(keys)
    requests = {key: logged_exchanges[key][0] for key in keys if key in logged_exchanges}
    chains = paraphrase_chains(requests, replies, item, view.plan.subject.form)
    vectors = embedded_vectors(requests, replies)
    table = cosine_table(wording_labels(chains, item), chains, vectors)
    if table.empty:
        return MissingFigure("the log holds no two chains of this item")
    return _item_figure(table, item)


def _cells_data(view: RunView, choice: FigureChoice) -> FigureData | MissingFigure:
    measures = robustness_measures(view)
    if not measures:
        return missing_scorer_reason("robustness")
    measure = choice.select("metric", measures)
    step_scores = reliability.with_perturbation(view.scores(measure))
    step_scores = step_scores[step_scores["step"].notna()]
    names = order_perturbations(step_scores["perturbation"])
    perturbation = choice.select("perturbation", sorted(names, key=lambda name: name != "all"))
    item_means = reliability.item_step_means(step_scores, perturbation)
    items = list(dict.fromkeys(item_means["item_id"]))
    table = reliability.item_cell_table(item_means, measure, items[:MAX_ITEM_ROWS])
    note = (
        f"Perturbation: {perturbation_name(perturbation)}; {len(items[:MAX_ITEM_ROWS])} of"
        f" {len(items)} items."
    )
    return FigureData(table, note, FigureChoice(metric=measure, perturbation=perturbation))


def _entropy_data(view: RunView, choice: FigureChoice) -> FigureData | MissingFigure:
    spec = view.scorer("entropy")
    if spec is None or "entropy" not in set(view.score_groups["scorer"]):
        return missing_scorer_reason("entropy")
    item_ids = view.items_with("step_entropy", with_value=True)
    if not item_ids:
        return MissingFigure("no step has an entropy")
    item = view.item(choice.select("item", item_ids))
    rows = view.item_scores(item.id)
    note = (
        f"A jump: more than {spec.params['jump_nats']:g} nats above the mean of the earlier steps."
    )
    return _item_figure(entropy_steps(rows[rows["scorer"] == "entropy"]), item, note)


def _drops_data(view: RunView, choice: FigureChoice) -> FigureData | MissingFigure:
    patched_item = _select_patched_item(view, choice)
    if isinstance(patched_item, MissingFigure):
        return patched_item
    item, item_scores, setting = patched_item
    span = choice.select("span", mediation.drop_spans(item_scores) or [""])
    drop_choice = FigureChoice(item=item.id, setting="~".join(setting), span=span)
    table = mediation.drop_table(item_scores, span)
    return FigureData(table, f"Item {item.id}; layers: {span or 'none'}.", drop_choice)


def _select_patched_item(
    view: RunView, choice: FigureChoice
) -> tuple[Item, pd.DataFrame, mediation.Setting] | MissingFigure:
    """Return the chosen item, or the first patched under the setting, and its drops there."""
    setting = select_mediation_setting(view, choice)
    if setting is None or "patch_drop" not in view.metrics:
        return missing_scorer_reason("mediation")
    groups = mediation.with_facets(view.score_groups)
    facets = setting.select_rows(groups[groups["metric"] == "patch_drop"])["facet"].tolist()
    patched_ids = read.list_scored_items(view.store, view.id, ("patch_drop",), facet_texts=facets)
    item = view.item(choice.select("item", patched_ids))
    scores = mediation.with_facets(view.item_scores(item.id))
    return item, setting.select_rows(scores[scores["metric"] == "patch_drop"]), setting


def _density_data(view: RunView, choice: FigureChoice) -> FigureData | MissingFigure:
    patched_item = _select_patched_item(view, choice)
    if isinstance(patched_item, MissingFigure):
        return patched_item
    item, item_scores, setting = patched_item
    spreads = mediation.spread_table(item_scores, setting, item.id, view.plan.seed)
    table = mediation.item_density_table(spreads, item_scores)
    if table.empty:
        return MissingFigure("no share of the positions was patched")
    return FigureData(
        table, f"Item {item.id}.", FigureChoice(item=item.id, setting="~".join(setting))
    )


def _item_figure(table: pd.DataFrame, item: Item, note: str = "") -> FigureData:
    return FigureData(table, f"Item {item.id}. {note}".strip(), FigureChoice(item=item.id))


CCS_RANKING = FigureTable("ccs_ranking", "item", _ranking_data, CCS_METRICS)
ITEM_PARTS = FigureTable("item_parts", "item", _components_data, reliability.RELIABILITY_METRICS)
VERIFICATION_LINKS = FigureTable("verification_links", "item", _links_data, ("link_support",))
CHAIN_COSINES = FigureTable("chain_cosines", "item", _cosines_data, ("consistency_mu", "feature"))
ITEM_CELLS = FigureTable("item_cells", "run", _cells_data, tuple(MEASURE_NAMES))
ENTROPY_BY_STEP = FigureTable("entropy_by_step", "item", _entropy_data, ("step_entropy",))
DROPS_BY_DONOR = FigureTable("drops_by_donor", "item", _drops_data, ("patch_drop",))
ITEM_DENSITY = FigureTable("item_density", "item", _density_data, ("patch_drop",))
